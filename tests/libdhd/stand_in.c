/* A stand-in for libdhd of Force Dimension's SDK: its functions over two simulated devices.

   A device is a point mass that the set force and a hand's spring move, one millisecond with each force that is
   set, or a script of readings. Signatures, numbers, units (SI) and axes (x toward the user, y right, z up) are
   those of dhdc.h; a call for a device that is not open is counted. The functions standin_* set the scene. */

#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../motors.h"
#include "../stylus.h"

#define DEVICES 2
#define LOG 100000
#define READING 16 /* position 3, rotation by rows 9, velocity 3, buttons */
#define NEVER (1L << 60)
enum { STATUS_POWER, STATUS_CONNECTED, STATUS_STARTED, STATUS_RESET, STATUS_IDLE, STATUS_FORCE };
#define STATUS_FORCE_OFF_CAUSE 14
#define STATUSES 16

typedef struct {
    const char *name;
    unsigned short serial;
    int there, open, robot, drives, found, force, wrist, gravity, watchdog, unwatched, cause, enabled;
    double set_at; /* when the last force was set [s] */
    long reads, writes, asked, reset_until, off_from, off_until, unplug_at, deaf_from, deaf_until, block_at;
    int block_ms;
    Stylus stylus; /* in libdhd's axes; its hand swings along y, the servo's x */
    double reading[READING], sent[6], most;
    const double *script;
    long rows;
} Device;

static Device devices[DEVICES];
static double logs[DEVICES][LOG][6];
static long illegal;
static int expert;
static const char *words = "no error";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Device *open_device(signed char id) {
    if (id >= 0 && id < DEVICES && devices[id].open) return devices + id;
    illegal++;
    words = "invalid device";
    return NULL;
}

/* Whether it answers: not once it is unplugged, and not while it is deaf. */
static int answers(Device *d) {
    if (d->reads >= d->unplug_at) {
        words = "communication error";
        return 0;
    }
    if (d->reads >= d->deaf_from && d->reads < d->deaf_until) {
        words = "timeout";
        return 0;
    }
    return 1;
}

/* Whether its force is off now, for its cause; one that the program may put right stays off until it does. */
static int off(Device *d) {
    if (d->cause >= 2 && d->cause <= 4) return d->writes >= d->off_from && !d->enabled;
    return d->writes >= d->off_from && d->writes < d->off_until;
}

/* For how long the firmware's watchdog, which goes by its own clock, still lets the force last [s]. */
static double lasts(Device *d) { return d->watchdog ? d->set_at + 125e-6 * d->watchdog - clock_now() : INFINITY; }

/* Force that the motors give at this moment [N]. */
static double motors(Device *d) {
    return d->open && d->force && !off(d) && lasts(d) >= 0.0 ? norm(d->sent) : 0.0;
}

static void record(Device *d, double asked) {
    if (d == devices) record_motors(motors(d), asked, lasts(d));
}

static void move(Device *d) {
    static const double none[3];
    stylus_move(&d->stylus, d->force && !off(d) ? d->sent : none, d->writes * 1e-3);
}

int dhdGetDeviceCount(void) {
    int n = 0;
    for (int k = 0; k < DEVICES; k++) n += devices[k].there;
    return n;
}

/* Opened by drdOpenID it is a robot's: only then it moves by itself. */
static int open_as(signed char index, int robot) {
    if (index < 0 || index >= DEVICES || !devices[index].there || devices[index].open) {
        words = "device in use";
        return -1;
    }
    devices[index].open = 1;
    devices[index].robot = robot;
    return index;
}

int dhdOpenID(signed char index) { return open_as(index, 0); }
int drdOpenID(signed char index) { return open_as(index, 1); }

int dhdClose(signed char id) {
    Device *d = open_device(id);
    if (!d) return -1;
    d->open = d->force = d->robot = 0;
    record(d, 0.0);
    return 0;
}

static Device *robot(signed char id) {
    Device *d = open_device(id);
    if (d && !d->robot) illegal++, words = "not a robot";
    return d && d->robot ? d : NULL;
}
int drdClose(signed char id) { return robot(id) ? dhdClose(id) : -1; }
_Bool drdIsSupported(signed char id) { Device *d = robot(id); return d && d->drives; }
/* It drives to its stops and finds its origin, which takes a moment; not under a force of ours. */
int drdAutoInit(signed char id) {
    Device *d = robot(id);
    if (!d || !d->drives || d->force) {
        illegal += d != NULL;
        return -1;
    }
    usleep(50000);
    d->found++;
    d->reset_until = 0;
    return 0;
}
int drdStop(_Bool force, signed char id) { return (void)force, robot(id) ? 0 : -1; }

int dhdStop(signed char id) { return open_device(id) ? 0 : -1; }
const char *dhdErrorGetLastStr(void) { return words; }
const char *dhdGetSystemName(signed char id) { Device *d = open_device(id); return d ? d->name : NULL; }
_Bool dhdHasActiveWrist(signed char id) { Device *d = open_device(id); return d && d->wrist; }

int dhdGetSerialNumber(unsigned short *out, signed char id) {
    Device *d = open_device(id);
    if (!d) return -1;
    *out = d->serial;
    return 0;
}

int dhdEnableForce(unsigned char on, signed char id) {
    Device *d = open_device(id);
    if (!d) return -1;
    d->force = on;
    if (on && d->writes >= d->off_from) d->enabled = 1;
    if (!on) record(d, 0.0);
    return 0;
}

int dhdSetGravityCompensation(int on, signed char id) {
    Device *d = open_device(id);
    if (d) d->gravity = on;
    return d ? 0 : -1;
}

/* The expert calls are refused unless they are enabled, for all devices at once. */
static Device *expert_device(signed char id) {
    if (!expert) {
        words = "expert mode disabled";
        return NULL;
    }
    return open_device(id);
}

int dhdEnableExpertMode(void) { return expert = 1, 0; }
int dhdDisableExpertMode(void) { return expert = 0, 0; }

int dhdSetWatchdog(unsigned char eighths, signed char id) {
    Device *d = expert_device(id);
    if (!d || d->unwatched) return words = d ? "not available" : words, -1;
    d->watchdog = eighths;
    return 0;
}

int dhdGetWatchdog(unsigned char *eighths, signed char id) {
    Device *d = expert_device(id);
    if (!d || d->unwatched) return words = d ? "not available" : words, -1;
    *eighths = (unsigned char)d->watchdog;
    return 0;
}

int dhdGetStatus(int *out, signed char id) {
    Device *d = open_device(id);
    if (!d || !answers(d)) return -1;
    memset(out, 0, STATUSES * sizeof *out);
    out[STATUS_POWER] = out[STATUS_CONNECTED] = out[STATUS_STARTED] = 1;
    out[STATUS_RESET] = d->asked++ < d->reset_until;
    out[STATUS_FORCE] = d->force && !off(d);
    out[STATUS_FORCE_OFF_CAUSE] = off(d) ? d->cause : 0;
    return 0;
}

int dhdGetPositionAndOrientationFrame(double *x, double *y, double *z, double *frame, signed char id) {
    Device *d = open_device(id);
    if (!d) return -1;
    if (d->reads == d->block_at) usleep(1000 * (useconds_t)d->block_ms);
    d->reads++;
    if (!answers(d)) return -1;
    pthread_mutex_lock(&lock);
    if (d->script) {
        long row = d->writes < d->rows ? d->writes : d->rows - 1;
        memcpy(d->reading, d->script + READING * row, sizeof d->reading);
    } else {
        memset(d->reading, 0, sizeof d->reading);
        for (int i = 0; i < 3; i++) d->reading[i] = stylus_read(&d->stylus, i);
        memcpy(d->reading + 12, d->stylus.v, sizeof d->stylus.v);
        d->reading[3] = d->reading[7] = d->reading[11] = 1.0;
    }
    *x = d->reading[0], *y = d->reading[1], *z = d->reading[2];
    memcpy(frame, d->reading + 3, 9 * sizeof *frame);
    pthread_mutex_unlock(&lock);
    return 0;
}

int dhdGetLinearVelocity(double *x, double *y, double *z, signed char id) {
    Device *d = open_device(id);
    if (!d || !answers(d)) return -1;
    *x = d->reading[12], *y = d->reading[13], *z = d->reading[14];
    return 1; /* DHD_TIMEGUARD: as good as new */
}

unsigned int dhdGetButtonMask(signed char id) {
    Device *d = open_device(id);
    return d ? (unsigned)d->reading[15] : 0;
}

int dhdSetForceAndTorqueAndGripperForce(
    double fx, double fy, double fz, double tx, double ty, double tz, double grip, signed char id) {
    Device *d = open_device(id);
    const double sent[6] = {fx, fy, fz, tx, ty, tz};
    if (d && !answers(d)) record(d, norm(sent));
    if (!d || !answers(d)) return -1;
    if (!d->wrist && (tx != 0.0 || ty != 0.0 || tz != 0.0)) illegal++;
    if (grip != 0.0) illegal++;
    if (!isfinite(fx + fy + fz + tx + ty + tz)) return illegal++, -1;
    pthread_mutex_lock(&lock);
    memcpy(d->sent, sent, sizeof sent);
    d->set_at = clock_now();
    if (d->writes < LOG) memcpy(logs[d - devices][d->writes], sent, sizeof sent);
    move(d);
    d->writes++;
    record(d, norm(sent));
    pthread_mutex_unlock(&lock);
    return norm(sent) > d->most ? 2 : 0; /* DHD_MOTOR_SATURATED */
}

/* ---- the test's side */

void standin_reset(void) {
    memset(devices, 0, sizeof devices);
    devices[0] = (Device){.name = "sigma.7", .serial = 1234, .wrist = 1};
    devices[1] = (Device){.name = "Falcon", .serial = 77};
    for (int k = 0; k < DEVICES; k++) {
        devices[k].there = 1;
        devices[k].off_from = devices[k].off_until = devices[k].unplug_at = NEVER;
        devices[k].deaf_from = devices[k].deaf_until = devices[k].block_at = NEVER;
        devices[k].most = 1e9;
        devices[k].stylus = (Stylus){.mass = 0.15, .stiffness = 400.0, .damping = 4.0, .swings = 1};
    }
    illegal = expert = 0;
}

__attribute__((constructor)) static void begin(void) { standin_reset(); }

/* Whether it has motors by which it may find its origin; how often it did. */
void standin_drives(int k, int drives) { devices[k].drives = drives; }
int standin_found(int k) { return devices[k].found; }
void standin_there(int k, int there) { devices[k].there = there; }
/* It asks to be calibrated until its status was asked for so often. */
void standin_uncalibrated(int k, long asked) { devices[k].reset_until = devices[k].asked + asked; }
/* Its force is off from one write to another, for a cause; one that the program puts right ignores the end. */
void standin_off(int k, int cause, long from, long until) {
    devices[k].cause = cause;
    devices[k].off_from = from, devices[k].off_until = until;
    devices[k].enabled = 0;
}
void standin_unplug(int k, long read) { devices[k].unplug_at = read; }
void standin_deaf(int k, long from, long until) { devices[k].deaf_from = from, devices[k].deaf_until = until; }
void standin_block(int k, long read, int ms) { devices[k].block_at = read, devices[k].block_ms = ms; }
void standin_saturate(int k, double force) { devices[k].most = force; }
STYLUS_CONTROLS
void standin_script(int k, const double *readings, long rows) {
    devices[k].script = readings;
    devices[k].rows = rows;
}
long standin_log(int k, double *out, long most) {
    long n = devices[k].writes < most ? devices[k].writes : most;
    memcpy(out, logs[k], (size_t)n * sizeof logs[k][0]);
    return n;
}
int standin_open(int k) { return devices[k].open; }
int standin_force(int k) { return devices[k].force; }
double standin_motors(int k) { return motors(devices + k); }
void standin_unwatched(int k, int none) { devices[k].unwatched = none; }
int standin_expert(void) { return expert; }
int standin_watchdog(int k) { return devices[k].watchdog; }
int standin_gravity(int k) { return devices[k].gravity; }
long standin_illegal(void) { return illegal; }
