#version 330 core
layout(location = 0) in vec3 position;
uniform mat4 to_clip;
out vec3 world;

void main() {
    world = position;
    gl_Position = to_clip * vec4(position, 1.0);
}
