#version 330 core
// A key light from above left, a weak fill from the eye, sky and ground for the rest; both sides of a face are lit.
// A value from 0 to 1 chooses the colour from the map, a negative one leaves the body its own.
in vec3 world;
in vec3 normal;
in vec4 tint;
in float value;
uniform vec3 eye;
uniform vec3 light;
uniform float gloss;
uniform float glow;
uniform vec3 colour_map[33];
out vec4 pixel;

const float MAP_GLOW = 0.6;  // mostly unlit and without gloss: a shade must not be read as another value

vec3 mapped(float t) {
    float at = 32.0 * min(t, 1.0);
    int k = min(int(at), 31);
    return mix(colour_map[k], colour_map[k + 1], at - float(k));
}

void main() {
    vec3 n = normalize(normal) * (gl_FrontFacing ? 1.0 : -1.0);
    vec3 v = normalize(eye - world);
    vec3 h = normalize(light + v);
    float key = max(dot(n, light), 0.0);
    float fill = max(dot(n, v), 0.0);
    vec3 sky = mix(vec3(0.30, 0.29, 0.28), vec3(0.42, 0.44, 0.47), 0.5 + 0.5 * n.y);
    bool has_value = value >= 0.0;
    vec3 base = pow(has_value ? mapped(value) : tint.rgb, vec3(2.2));
    vec3 colour = base * (sky + 0.54 * key * vec3(1.0, 0.98, 0.94) + 0.12 * fill);
    colour = mix(colour, base, has_value ? MAP_GLOW : glow);
    colour += (has_value ? 0.0 : gloss) * (0.16 * pow(max(dot(n, h), 0.0), 60.0) + 0.06 * pow(1.0 - fill, 4.0));
    pixel = vec4(pow(clamp(colour, 0.0, 1.0), vec3(1.0 / 2.2)), tint.a);
}
