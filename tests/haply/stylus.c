/* The stylus of tests/stylus.h for the stand-in of Haply's service, which is Python. */
#define _GNU_SOURCE
#include "../stylus.h"

#define DEVICES 1
typedef struct { Stylus stylus; } Device;
static Device devices[DEVICES] = {{.stylus = {.mass = 0.15, .stiffness = 400.0, .damping = 4.0}}};

STYLUS_CONTROLS
long standin_log(int k, double *out, long max) { return (void)k, (void)out, max * 0; }
/* One millisecond under a force [N]. */
void standin_move(double x, double y, double z) {
    const double force[3] = {x, y, z};
    stylus_move(&devices[0].stylus, force, 0.0);
}
/* Position as the encoder has it [m], and velocity [m/s]. */
void standin_read(double *out) {
    for (int i = 0; i < 3; i++) {
        out[i] = stylus_read(&devices[0].stylus, i);
        out[3 + i] = devices[0].stylus.v[i];
    }
}
