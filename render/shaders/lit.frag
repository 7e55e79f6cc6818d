#version 330 core
// A key light from above left, a weak fill from the eye, sky and ground for the rest; both sides of a face are lit.
in vec3 world;
in vec3 normal;
in vec4 tint;
uniform vec3 eye;
uniform vec3 light;
uniform float gloss;
uniform float glow;
out vec4 pixel;

void main() {
    vec3 n = normalize(normal) * (gl_FrontFacing ? 1.0 : -1.0);
    vec3 v = normalize(eye - world);
    vec3 h = normalize(light + v);
    float key = max(dot(n, light), 0.0);
    float fill = max(dot(n, v), 0.0);
    vec3 sky = mix(vec3(0.30, 0.29, 0.28), vec3(0.42, 0.44, 0.47), 0.5 + 0.5 * n.y);
    vec3 base = pow(tint.rgb, vec3(2.2));
    vec3 colour = base * (sky + 0.54 * key * vec3(1.0, 0.98, 0.94) + 0.12 * fill);
    colour = mix(colour, base, glow);
    colour += gloss * (0.16 * pow(max(dot(n, h), 0.0), 60.0) + 0.06 * pow(1.0 - fill, 4.0));
    pixel = vec4(pow(clamp(colour, 0.0, 1.0), vec3(1.0 / 2.2)), tint.a);
}
