#version 330 core
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 direction;
layout(location = 2) in float share;
layout(location = 3) in float open;
layout(location = 4) in vec3 place;
uniform mat4 to_clip;
uniform vec4 colour;
uniform vec3 eye;
uniform vec3 light;
out vec3 normal;
out vec3 sight;
out vec4 tint;
flat out vec4 base;  // the same as light
out float shade;
#ifdef MAPPED
out float value;
#endif
#ifdef PATTERNED
out vec4 at;
#endif

void main() {
    vec3 v = normalize(eye - position);
    normal = direction;
    sight = vec3(dot(direction, v), dot(light, v), v.y);
    tint = colour;
    base = vec4(colour.rgb * colour.rgb, colour.a);
    shade = open;
#ifdef MAPPED
    value = share;
#endif
#ifdef PATTERNED
    vec3 p = place;
    at = vec4(p.x + 0.62 * p.y - 0.31 * p.z, p.y + 0.57 * p.z - 0.37 * p.x,
              p.z + 0.66 * p.x - 0.29 * p.y, 0.71 * (p.x - p.y + p.z));
#endif
    gl_Position = to_clip * vec4(position, 1.0);
}
