#version 330 core
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 direction;
layout(location = 2) in float share;
uniform mat4 to_clip;
uniform vec4 colour;
out vec3 world;
out vec3 normal;
out vec4 tint;
out vec4 base;  // the same as light
out float value;

void main() {
    world = position;
    normal = direction;
    tint = colour;
    base = vec4(pow(colour.rgb, vec3(2.2)), colour.a);
    value = share;
    gl_Position = to_clip * vec4(position, 1.0);
}
