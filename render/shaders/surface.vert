#version 330 core
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 direction;
layout(location = 2) in float share;
layout(location = 3) in float open;
layout(location = 4) in vec3 place;
uniform mat4 to_clip;
uniform vec4 colour;
uniform vec3 eye;
out vec3 toward;
out vec3 normal;
out vec4 tint;
out vec4 base;  // the same as light
out float shade;
#ifdef MAPPED
out float value;
#endif
#ifdef PATTERNED
out vec3 at;
#endif

void main() {
    toward = eye - position;
    normal = direction;
    tint = colour;
    base = vec4(colour.rgb * colour.rgb, colour.a);
    shade = open;
#ifdef MAPPED
    value = share;
#endif
#ifdef PATTERNED
    at = place;
#endif
    gl_Position = to_clip * vec4(position, 1.0);
}
