#version 330 core
// A key light from above left, a weak fill from the eye, sky and ground for the rest; both sides of a face are lit.
// With MAPPED a value from 0 to 1 chooses the colour from the map, a negative one leaves the body its own. A driver
// that draws on the processor computes both sides of every branch: who needs no map has a program without it.
in vec3 world;
in vec3 normal;
in vec4 base;
uniform vec3 eye;
uniform vec3 light;
uniform float gloss;
uniform float glow;
out vec4 pixel;

#ifdef MAPPED
in float value;
uniform vec3 colour_map[33];

const float MAP_GLOW = 0.6;  // mostly unlit and without gloss: a shade must not be read as another value

vec3 mapped(float t) {
    float at = 32.0 * min(t, 1.0);
    int k = min(int(at), 31);
    return mix(colour_map[k], colour_map[k + 1], at - float(k));
}
#endif

void main() {
    vec3 n = normalize(normal) * (gl_FrontFacing ? 1.0 : -1.0);
    vec3 v = normalize(eye - world);
    vec3 h = normalize(light + v);
    float key = max(dot(n, light), 0.0);
    float fill = max(dot(n, v), 0.0);
    vec3 sky = mix(vec3(0.30, 0.29, 0.28), vec3(0.42, 0.44, 0.47), 0.5 + 0.5 * n.y);
    vec3 own = base.rgb;
    float shine = gloss;
    float shown = glow;
#ifdef MAPPED
    if (value >= 0.0) {
        own = pow(mapped(value), vec3(2.2));
        shine = 0.0;
        shown = MAP_GLOW;
    }
#endif
    vec3 colour = own * (sky + 0.54 * key * vec3(1.0, 0.98, 0.94) + 0.12 * fill);
    colour = mix(colour, own, shown);
    // the sixtieth and the fourth power by products
    float s2 = max(dot(n, h), 0.0);
    s2 *= s2;
    float s4 = s2 * s2, s8 = s4 * s4, s16 = s8 * s8;
    float rim = (1.0 - fill) * (1.0 - fill);
    colour += shine * (0.16 * s16 * s16 * s16 * s8 * s4 + 0.06 * rim * rim);
    pixel = vec4(pow(clamp(colour, 0.0, 1.0), vec3(1.0 / 2.2)), base.a);
}
