#version 330 core
// A key light from above left, a weak fill from the eye, sky and ground for the rest; both sides of a face are lit.
// A driver that draws on the processor computes both sides of every branch, and no power in less than many steps:
// what hardly bends between two vertices comes from there, light is the square of a colour, and who needs no map or
// no pattern has a program without it.
flat in vec4 base;
in float shade;  // of the light that comes from all around, the part that arrives
uniform vec3 light;
uniform float gloss;
uniform float glow;   // part of the colour that shows without any light
uniform float depth;  // how far light goes round inside: 0 for a hard body
uniform float mirror; // part of the surroundings that is seen in it, where there are no specks
out vec4 pixel;

#ifdef MAPPED
// A value from 0 to 1 chooses the colour from the map, a negative one leaves the body its own.
in float value;
uniform vec3 colour_map[33];

const float MAP_GLOW = 0.6;  // mostly unlit and without gloss: a shade must not be read as another value

vec3 mapped(float t) {
    float at = 32.0 * min(t, 1.0);
    int k = min(int(at), 31);
    return mix(colour_map[k], colour_map[k + 1], at - float(k));
}
#endif

#ifdef PATTERNED
// Specks that lie in the body as it was at rest, and so go with its surface and stretch as it does.
in vec4 at;  // along four directions
uniform float specks;

float speck(vec4 along) {
    vec4 wave = abs(fract(along) - 0.5);
    float finer = 1.0 - clamp(1.5 * fwidth(along.x + along.y), 0.0, 1.0);  // melts into a tone far away
    return finer * (wave.x + wave.y + wave.z + wave.w - 1.0);
}
#endif

#ifdef ROUND
// A ball: its normal follows from the place on its disc, which ends within a pixel.
in vec2 disc;
in vec3 toward;
flat in vec3 right;
flat in vec3 up;
flat in vec3 front;
#else
in vec3 normal;
in vec3 sight;  // of the way to the eye, of length 1: its share along the normal, along the light, upward
#endif

void main() {
    float cover = base.a;
#ifdef ROUND
    float r2 = dot(disc, disc), r = sqrt(r2);
    cover *= clamp((1.0 - r) / fwidth(r) + 0.5, 0.0, 1.0);
    if (cover <= 0.0) discard;
    vec3 n = normalize(disc.x * right + disc.y * up + sqrt(max(1.0 - r2, 0.0)) * front);
    vec3 v = normalize(toward);
    vec3 seen = vec3(dot(n, v), dot(light, v), v.y);
#else
    float side = (gl_FrontFacing ? 1.0 : -1.0) * inversesqrt(max(dot(normal, normal), 1e-12));
    vec3 n = side * normal;
    vec3 seen = vec3(side * sight.x, sight.yz);
#endif
    float key = dot(n, light);
    float fill = max(seen.x, 0.0);
    float lit = max(key, 0.0);
    float round = max((key + depth) / (1.0 + depth), 0.0) - lit;  // light that comes out beyond the shadow's edge
    vec3 own = base.rgb;
    float shine = gloss, shown = glow;
#ifdef PATTERNED
    own *= 1.0 + specks * speck(at);
#endif
#ifdef MAPPED
    if (value >= 0.0) {
        own = mapped(value);
        own *= own;
        shine = 0.0;
        shown = MAP_GLOW;
    }
#endif
    float open = shade;
    vec3 sky = vec3(0.36, 0.365, 0.375) + n.y * vec3(0.06, 0.075, 0.095);
    vec3 colour = own * (open * (sky + 0.12 * fill) + (0.4 + 0.6 * open) * 0.54 * lit * vec3(1.0, 0.98, 0.94));
    colour += round * own * (0.25 + own);
#ifndef PATTERNED
    float upward = 0.5 + fill * n.y - 0.5 * seen.z;  // where the mirrored eye looks, 0 down to 1 up
    float bright = 0.88 + 0.12 / max(dot(own, vec3(0.3, 0.6, 0.1)), 0.06);  // of a mirror of the body's own hue
    colour = mix(colour, bright * own * (0.25 + 1.1 * upward * upward), mirror);
#endif
    colour = mix(colour, own, shown);
    // the light's image by the sixteenth power
    float s = max(2.0 * key * fill - seen.y, 0.0);
    s *= s;
    s *= s;
    s *= s;
    float rim = (1.0 - fill) * (1.0 - fill);
    colour += shine * open * (0.16 * s * s + 0.06 * rim * rim);
    pixel = vec4(sqrt(colour), cover);
}
