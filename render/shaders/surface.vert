#version 330 core
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 direction;
uniform mat4 to_clip;
uniform vec4 colour;
out vec3 world;
out vec3 normal;
out vec4 tint;

void main() {
    world = position;
    normal = direction;
    tint = colour;
    gl_Position = to_clip * vec4(position, 1.0);
}
