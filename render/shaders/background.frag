#version 330 core
in float height;
uniform vec3 bottom;
uniform vec3 top;
out vec4 pixel;

void main() { pixel = vec4(mix(bottom, top, smoothstep(0.0, 1.0, height)), 1.0); }
