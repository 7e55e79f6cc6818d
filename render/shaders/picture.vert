#version 330 core
// A picture over the whole window.
layout(location = 0) in vec2 corner;
out vec2 place;

void main() {
    place = corner;
    gl_Position = vec4(2.0 * corner - 1.0, 0.0, 1.0);
}
