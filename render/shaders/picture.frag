#version 330 core
in vec2 place;
uniform sampler2D picture;
out vec4 pixel;

void main() { pixel = texture(picture, place); }
