/* The stylus of a stand-in, SI: a point mass that forces and a hand move, with what real ones have in the way: an
   encoder's counts, dry friction, and frames that a force is on its way. */

#include <math.h>
#include <string.h>

#define ON_ITS_WAY 32

typedef struct {
    double x[3], v[3], mass, friction, count; /* one count of the encoder, 0 for none */
    double hand[3], stiffness, damping;       /* where its hand is, and how it holds */
    double amplitude, frequency;              /* with which the hand swings, along the axis `swings` */
    int swings, delay;                        /* frames from a force to its effect */
    double line[ON_ITS_WAY + 1][3];
} Stylus;

/* One millisecond from t on under a held force. Friction takes from the speed what it can, and all of it where the
   stylus sticks. */
static void stylus_move(Stylus *s, const double *force, double t) {
    const double h = 0.25e-3;
    memmove(s->line[1], s->line[0], ON_ITS_WAY * sizeof s->line[0]);
    memcpy(s->line[0], force, sizeof s->line[0]);
    for (int k = 0; k < 4; k++) {
        double speed = 0.0, lost = h * s->friction / s->mass;
        for (int i = 0; i < 3; i++) {
            double swing = s->amplitude * sin(2 * M_PI * s->frequency * (t + k * h));
            double target = s->hand[i] + (i == s->swings ? swing : 0.0);
            double pull = s->line[s->delay][i] + s->stiffness * (target - s->x[i]) - s->damping * s->v[i];
            s->v[i] += h * pull / s->mass;
            speed += s->v[i] * s->v[i];
        }
        double left = s->friction == 0.0 ? 1.0 : lost < sqrt(speed) ? 1.0 - lost / sqrt(speed) : 0.0;
        for (int i = 0; i < 3; i++) {
            s->v[i] *= left;
            s->x[i] += h * s->v[i];
        }
    }
}

/* What its encoder reads along an axis [m]. */
static double stylus_read(const Stylus *s, int i) {
    return s->count > 0.0 ? s->count * floor(s->x[i] / s->count + 0.5) : s->x[i];
}

#define STYLUS_CONTROLS                                                                                            \
    /* A hand that swings: amplitude [m], frequency [Hz]. */                                                       \
    void standin_hand(int k, double amplitude, double frequency) {                                                 \
        devices[k].stylus.amplitude = amplitude, devices[k].stylus.frequency = frequency;                          \
    }                                                                                                              \
    /* One count of the encoder [m], frames from a force to its effect, dry friction [N], moving mass [kg]. */     \
    void standin_mechanics(int k, double count, int delay, double friction, double mass) {                         \
        devices[k].stylus.count = count, devices[k].stylus.delay = delay;                                          \
        devices[k].stylus.friction = friction, devices[k].stylus.mass = mass;                                      \
    }                                                                                                              \
    /* A hand at x y z [m] that holds with this stiffness [N/m] and damping [N s/m], or, with none, lets go. */    \
    void standin_held_at(int k, double x, double y, double z, double stiffness, double damping) {                  \
        devices[k].stylus.hand[0] = x, devices[k].stylus.hand[1] = y, devices[k].stylus.hand[2] = z;               \
        devices[k].stylus.stiffness = stiffness, devices[k].stylus.damping = damping;                              \
    }
