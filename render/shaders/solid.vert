#version 330 core
// A unit shape placed by its origin and the three vectors that its own axes become.
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 direction;
layout(location = 2) in vec3 origin;
layout(location = 3) in vec3 axis_x;
layout(location = 4) in vec3 axis_y;
layout(location = 5) in vec3 axis_z;
layout(location = 6) in vec3 colour;
uniform mat4 to_clip;
uniform vec3 eye;
uniform vec3 light;
uniform float opacity;
out vec3 normal;
out vec3 sight;
out vec4 tint;
flat out vec4 base;  // the same as light
out float shade;

void main() {
    vec3 world = origin + axis_x * position.x + axis_y * position.y + axis_z * position.z;
    // Cofactors keep a normal at right angles to a surface that is stretched.
    normal = cross(axis_y, axis_z) * direction.x + cross(axis_z, axis_x) * direction.y
           + cross(axis_x, axis_y) * direction.z;
    normal = normalize(normal);
    vec3 v = normalize(eye - world);
    sight = vec3(dot(normal, v), dot(light, v), v.y);
    tint = vec4(colour, opacity);
    base = vec4(colour * colour, opacity);
    shade = 1.0;
    gl_Position = to_clip * vec4(world, 1.0);
}
