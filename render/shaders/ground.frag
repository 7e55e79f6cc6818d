#version 330 core
// A plate with a metric grid, every fifth line stronger, its two axes coloured, fading out around the scene.
in vec3 world;
uniform vec3 axis_u;
uniform vec3 axis_v;
uniform vec3 origin;
uniform vec3 centre;
uniform float fade;
uniform float spacing;
uniform vec3 base;
uniform vec3 line;
uniform vec3 colour_u;
uniform vec3 colour_v;
uniform float show_axes;
uniform float opacity;
out vec4 pixel;

float lines(vec2 p, vec2 width, float thickness) {
    vec2 away = abs(fract(p - 0.5) - 0.5) / max(width, vec2(1e-6));
    vec2 on = clamp(thickness - away + 0.5, 0.0, 1.0);
    // Where lines are closer than two pixels they melt into a tone.
    on *= clamp(0.5 / max(width, vec2(1e-6)) - 1.0, 0.0, 1.0);
    return max(on.x, on.y);
}

void main() {
    vec2 p = vec2(dot(world - origin, axis_u), dot(world - origin, axis_v)) / spacing;
    vec2 width = fwidth(p);
    float minor = lines(p, width, 0.5);
    float major = lines(p / 5.0, width / 5.0, 0.75);
    vec3 colour = mix(base, line, max(0.28 * minor, 0.55 * major));
    vec2 axes = show_axes * clamp(1.5 - abs(p) / max(width, vec2(1e-6)), 0.0, 1.0);
    colour = mix(colour, colour_u, 0.9 * axes.y);
    colour = mix(colour, colour_v, 0.9 * axes.x);
    float r = length(world - centre) / fade;
    pixel = vec4(colour, opacity * (1.0 - smoothstep(0.35, 1.0, r)));
}
