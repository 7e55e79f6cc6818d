#version 330 core
// A ball as a square that looks at the eye; its fragments know where on the ball they are (ROUND in lit.frag).
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 direction;
layout(location = 2) in vec3 origin;
layout(location = 3) in vec3 axis_x;
layout(location = 4) in vec3 axis_y;
layout(location = 5) in vec3 axis_z;
layout(location = 6) in vec3 colour;
uniform mat4 to_clip;
uniform vec3 eye;
uniform float opacity;
out vec3 toward;
flat out vec4 base;  // the same as light
out float shade;
out vec2 disc;
flat out vec3 right;
flat out vec3 up;
flat out vec3 front;

void main() {
    float radius = length(axis_x);
    front = normalize(eye - origin);
    right = normalize(cross(abs(front.y) < 0.9 ? vec3(0.0, 1.0, 0.0) : vec3(1.0, 0.0, 0.0), front));
    up = cross(front, right);
    disc = position.xy;
    // where the ball's cap is, or what it lies on would hide half of it
    vec3 world = origin + radius * (disc.x * right + disc.y * up + 0.8 * front);
    toward = eye - world;
    base = vec4(colour * colour, opacity);
    shade = 1.0;
    gl_Position = to_clip * vec4(world, 1.0);
}
