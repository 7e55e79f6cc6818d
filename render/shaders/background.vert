#version 330 core
// One triangle over the whole picture, made from the vertex's number.
out float height;

void main() {
    vec2 corner = vec2((gl_VertexID << 1) & 2, gl_VertexID & 2);
    height = corner.y;
    gl_Position = vec4(2.0 * corner - 1.0, 1.0, 1.0);
}
