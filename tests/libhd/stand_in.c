/* A stand-in for libHD, the device library of OpenHaptics: its functions over simulated devices.

   A scheduler thread calls back at 1 kHz by absolute deadlines; a device is a point mass that the set force and
   a hand's spring move, or a script of readings, one a frame. Signatures, constants, units (mm, mm/s, rad/s, N)
   and the order of calls are those of HD/hdDevice.h, hdScheduler.h and hdDefines.h; a call out of order raises
   the library's own error and is counted. The functions standin_* set the scene and inject faults. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "../motors.h"
#include "../stylus.h"

typedef unsigned int HHD, HDenum, HDerror, HDCallbackCode;
typedef HDCallbackCode (*HDSchedulerCallback)(void *);
typedef struct { HDerror errorCode; int internalErrorCode; HHD hHD; } HDErrorInfo;

enum {
    INVALID_ENUM = 0x100, INVALID_VALUE = 0x101, INVALID_OPERATION = 0x102, BAD_HANDLE = 0x104,
    EXCEEDED_MAX_FORCE = 0x201, ALREADY_INITIATED = 0x301, COMM_ERROR = 0x302, COMM_CONFIG_ERROR = 0x303,
    ILLEGAL_BEGIN = 0x400, ILLEGAL_END = 0x401, FRAME_ERROR = 0x402, SCHEDULER_FULL = 0x501
};
enum {
    CURRENT_BUTTONS = 0x2000, SAFETY_SWITCH, CURRENT_POSITION = 0x2050, CURRENT_VELOCITY, CURRENT_TRANSFORM,
    CURRENT_ANGULAR_VELOCITY, MODEL_TYPE = 0x2501, DRIVER_VERSION, VENDOR, SERIAL_NUMBER, FIRMWARE_VERSION,
    MAX_WORKSPACE = 0x2550, USABLE_WORKSPACE, INPUT_DOF = 0x2553, OUTPUT_DOF, CALIBRATION_STYLE,
    UPDATE_RATE = 0x2600, MAX_STIFFNESS = 0x2602, MAX_FORCE, MAX_CONTINUOUS_FORCE, MOTOR_TEMPERATURE,
    MAX_DAMPING = 0x2609, CURRENT_FORCE = 0x2700, FORCE_OUTPUT = 0x4000, MAX_FORCE_CLAMPING,
    CALIBRATION_OK = 0x5000, CALIBRATION_NEEDS_UPDATE, CALIBRATION_NEEDS_MANUAL_INPUT, EXCEEDED_MAX_VELOCITY = 0x203
};
#define REFUSED 8
#define INVALID_HANDLE 0xFFFFFFFFu
#define FIRST_HANDLE 0x10u
#define NEVER (1L << 60)
#define DEVICES 2
#define LOG 200000
#define READING 23 /* a script's row: transform 16, velocity 3, angular velocity 3, buttons */

typedef struct { HDerror code; int internal; long from, until; } Fault;

typedef struct {
    const char *name, *model, *driver, *serial;
    double max_force, max_continuous, max_stiffness, max_damping, workspace[6], usable[6]; /* N, N/mm, mm */
    int connected, initialised, output, in_frame, gone;
    HDenum calibration, styles;
    long frames, unplug_at, logged;
    double force[3], applied[3], reading[READING];
    Stylus stylus;
    const double *script;
    long script_rows;
    Fault faults[8];
    int n_faults;
    int counting, clamping, drifted, updates, inkwell;
    long calls, frame_tick, ready_after, drift_at, block_at;
    int bus_us, block_ms, has_switch, has_temperature, n_refused;
    long closed_from, open_from, open_until;
    HDenum refused[REFUSED];
    double shift[3], jump[3], temperature, warming, velocity_limit; /* mm, share and share a frame, mm/s */
} Device;

typedef struct { HDSchedulerCallback call; void *data; unsigned short priority; int used, busy; long served; } Job;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static Device devices[DEVICES];
static double logs[DEVICES][LOG][3];
static HHD current = INVALID_HANDLE;
static HDErrorInfo errors[64];
static int n_errors;
static long illegal, starts, ticks, overrun, stolen, stall_at, real_period;
static volatile long hang_at;
static unsigned long rate;
#define JOBS 16
static Job jobs[JOBS];
static volatile int no_default, rate_fixed, held_us;
static long drop_from, drop_until;
static volatile long tick_began;

/* Note an event in the file that the environment names, for a test whose process will be gone. */
static void note(const char *event) {
    const char *path = getenv("STANDIN_JOURNAL");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%ld %s\n", (long)getpid(), event);
    fclose(file);
}

/* Whether another process has the devices, for a driver that leaves them to one: a lock on the file that the
 * environment names, which ends with its process. */
static int is_taken(void) {
    static int file = -1;
    const char *path = getenv("STANDIN_EXCLUSIVE");
    if (!path) return 0;
    if (file < 0) file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    return flock(file, LOCK_EX | LOCK_NB) != 0;
}

/* ---- inside, with the lock held */

static void raise_error(HDerror code, int internal, HHD handle) {
    if (n_errors == 64) {
        memmove(errors, errors + 1, 63 * sizeof *errors);
        n_errors--;
    }
    errors[n_errors++] = (HDErrorInfo){code, internal, handle};
}

static void refuse(HDerror code) { raise_error(code, 0, current); illegal++; }

/* Frames, forces and what they read belong to the scheduler's thread while it runs; it must not end itself. */
static pthread_t thread;
static volatile int running;
static int own_thread(void) { return running && pthread_equal(pthread_self(), thread); }
static void require_thread(int own) {
    if (running && own_thread() != own) illegal++;
}

static Device *device_of(HHD handle) {
    unsigned k = handle - FIRST_HANDLE;
    return k < DEVICES && devices[k].initialised ? devices + k : NULL;
}

static Device *current_device(void) {
    Device *d = device_of(current);
    if (!d) refuse(BAD_HANDLE);
    return d;
}

/* One millisecond of the stylus; the force is held over the tick. */
static void move(Device *d) {
    stylus_move(&d->stylus, d->applied, d->frames * 1e-3);
    memset(d->reading, 0, sizeof d->reading);
    for (int i = 0; i < 4; i++) d->reading[5 * i] = 1.0;
    for (int i = 0; i < 3; i++) {
        d->reading[12 + i] = 1e3 * stylus_read(&d->stylus, i);
        d->reading[16 + i] = 1e3 * d->stylus.v[i];
    }
}

static void sense(Device *d) {
    if (d->frames >= d->unplug_at) d->gone = 1;
    if (d->gone) {
        raise_error(COMM_ERROR, -1, current);
        return;
    }
    if (d->script) {
        long row = d->frames < d->script_rows ? d->frames : d->script_rows - 1;
        memcpy(d->reading, d->script + READING * row, sizeof d->reading);
    } else {
        move(d);
    }
    for (int i = 0; i < 3; i++) d->reading[12 + i] += d->shift[i];
}

/* The state of the calibration, which only a running scheduler brings up to date. */
static HDenum calibration_of(Device *d) {
    if (d->calls < d->ready_after) return CALIBRATION_NEEDS_MANUAL_INPUT;
    if (d->inkwell && d->calibration == CALIBRATION_NEEDS_MANUAL_INPUT) d->calibration = CALIBRATION_NEEDS_UPDATE;
    if (d->frames >= d->drift_at && !d->drifted) {
        d->drifted = 1;
        d->calibration = CALIBRATION_NEEDS_UPDATE;
    }
    return d->calibration;
}

static int closed(Device *d) {
    return d->frames >= d->closed_from && !(d->frames >= d->open_from && d->frames < d->open_until);
}

static int knows(Device *d, HDenum name) {
    for (int k = 0; k < d->n_refused; k++)
        if (d->refused[k] == name) return 0;
    return 1;
}

static void actuate(Device *d) {
    double speed = 0.0;
    for (int i = 0; i < 3; i++) speed += d->reading[16 + i] * d->reading[16 + i];
    if (sqrt(speed) > d->velocity_limit) {
        d->output = 0;
        raise_error(EXCEEDED_MAX_VELOCITY, 0, current);
    }
    int on = d->output && !d->gone && (!d->has_switch || closed(d));
    for (int i = 0; i < 3; i++) d->applied[i] = on ? d->force[i] : 0.0;
    if (d == devices) record_motors(norm(d->applied), norm(d->force), INFINITY);
    if (d->counting && d->logged < LOG) memcpy(logs[d - devices][d->logged++], d->applied, sizeof d->applied);
    if (norm(d->applied) > d->max_force * (1 + 1e-12) && !d->clamping) raise_error(EXCEEDED_MAX_FORCE, 0, current);
    for (int k = 0; k < d->n_faults; k++)
        if (d->frames >= d->faults[k].from && d->frames < d->faults[k].until)
            raise_error(d->faults[k].code, d->faults[k].internal, current);
}

/* ---- devices */

HHD hdInitDevice(const char *name) {
    HHD handle = INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    int k = 0;
    if (!name && no_default) k = DEVICES;
    while (k < DEVICES && strcmp(devices[k].name, name ? name : devices[0].name)) k++;
    if (k == DEVICES || !devices[k].connected) {
        raise_error(COMM_CONFIG_ERROR, 0, INVALID_HANDLE);
    } else if (devices[k].initialised || is_taken()) {
        refuse(ALREADY_INITIATED);
    } else {
        devices[k].initialised = 1;
        current = handle = FIRST_HANDLE + k;
        note("init");
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

void hdDisableDevice(HHD handle) {
    pthread_mutex_lock(&lock);
    require_thread(0);
    Device *d = device_of(handle);
    if (!d) {
        refuse(BAD_HANDLE);
    } else {
        d->initialised = d->output = d->in_frame = d->counting = d->clamping = 0;
        memset(d->applied, 0, sizeof d->applied);
        if (current == handle) current = INVALID_HANDLE;
        note("disable");
        if (d == devices) record_motors(0.0, 0.0, INFINITY);
    }
    pthread_mutex_unlock(&lock);
}

void hdMakeCurrentDevice(HHD handle) {
    pthread_mutex_lock(&lock);
    if (device_of(handle)) current = handle;
    else refuse(INVALID_OPERATION);
    pthread_mutex_unlock(&lock);
}

HHD hdGetCurrentDevice(void) { return current; }

/* One frame of a device in each of the scheduler's ticks, as HD_ONE_FRAME_LIMIT has it. */
void hdBeginFrame(HHD handle) {
    pthread_mutex_lock(&lock);
    Device *d = device_of(handle);
    long wait_us = d ? d->bus_us : 0;
    if (d && d->counting && d->frames == d->block_at) wait_us = 1000L * d->block_ms;
    if (wait_us) {
        pthread_mutex_unlock(&lock);
        usleep((useconds_t)wait_us);
        pthread_mutex_lock(&lock);
    }
    if (!d) {
        refuse(BAD_HANDLE);
    } else if (d->in_frame || (running && d->frame_tick == ticks)) {
        refuse(ILLEGAL_BEGIN);
    } else {
        require_thread(1);
        d->frame_tick = ticks;
        current = handle;
        d->in_frame = 1;
        sense(d);
    }
    pthread_mutex_unlock(&lock);
}

void hdEndFrame(HHD handle) {
    pthread_mutex_lock(&lock);
    Device *d = device_of(handle);
    if (!d) {
        refuse(BAD_HANDLE);
    } else if (!d->in_frame) {
        refuse(ILLEGAL_END);
    } else {
        require_thread(1);
        actuate(d);
        d->in_frame = 0;
        d->calls += running;
        d->frames += d->counting;
    }
    pthread_mutex_unlock(&lock);
}

HDErrorInfo hdGetError(void) {
    HDErrorInfo error = {0, 0, INVALID_HANDLE};
    pthread_mutex_lock(&lock);
    if (n_errors) error = errors[--n_errors];
    pthread_mutex_unlock(&lock);
    return error;
}

const char *hdGetErrorString(HDerror code) { return code ? "an error of the stand-in" : "no error"; }

static void set_capability(HDenum capability, int value) {
    pthread_mutex_lock(&lock);
    Device *d = current_device();
    if (d && capability == FORCE_OUTPUT) {
        d->output = value;
        d->counting |= value;
        note(value ? "force on" : "force off");
        if (d == devices && !value) record_motors(0.0, 0.0, INFINITY);
    }
    else if (d && !knows(d, capability)) raise_error(INVALID_ENUM, 0, current);
    else if (d && capability == MAX_FORCE_CLAMPING) d->clamping = value;
    else if (d) refuse(INVALID_ENUM);
    pthread_mutex_unlock(&lock);
}

void hdEnable(HDenum capability) { set_capability(capability, 1); }
void hdDisable(HDenum capability) { set_capability(capability, 0); }
unsigned char hdIsEnabled(HDenum capability) {
    Device *d = device_of(current);
    return d && capability == FORCE_OUTPUT && d->output;
}

void hdGetDoublev(HDenum name, double *out) {
    pthread_mutex_lock(&lock);
    Device *d = current_device();
    if (d && !knows(d, name)) raise_error(INVALID_ENUM, 0, current);
    else if (d) switch (name) {
        case MOTOR_TEMPERATURE:
            for (int i = 0; d->has_temperature && i < 3; i++) out[i] = d->temperature + d->warming * d->frames;
            if (!d->has_temperature) raise_error(INVALID_ENUM, 0, current);
            break;
        case CURRENT_TRANSFORM: memcpy(out, d->reading, 16 * sizeof *out); break;
        case CURRENT_POSITION: memcpy(out, d->reading + 12, 3 * sizeof *out); break;
        case CURRENT_VELOCITY: memcpy(out, d->reading + 16, 3 * sizeof *out); break;
        case CURRENT_ANGULAR_VELOCITY: memcpy(out, d->reading + 19, 3 * sizeof *out); break;
        case CURRENT_FORCE: memcpy(out, d->force, 3 * sizeof *out); break;
        case MAX_WORKSPACE: memcpy(out, d->workspace, 6 * sizeof *out); break;
        case USABLE_WORKSPACE: memcpy(out, d->usable, 6 * sizeof *out); break;
        case MAX_FORCE: *out = d->max_force; break;
        case MAX_CONTINUOUS_FORCE: *out = d->max_continuous; break;
        case MAX_STIFFNESS: *out = d->max_stiffness; break;
        case MAX_DAMPING: *out = d->max_damping; break;
        case FIRMWARE_VERSION: *out = 192.0; break;
        default: refuse(INVALID_ENUM);
    }
    if (d && name >= CURRENT_POSITION && name <= CURRENT_ANGULAR_VELOCITY && !d->in_frame) refuse(FRAME_ERROR);
    pthread_mutex_unlock(&lock);
}

void hdGetIntegerv(HDenum name, int *out) {
    pthread_mutex_lock(&lock);
    Device *d = current_device();
    if (d && !knows(d, name)) raise_error(INVALID_ENUM, 0, current);
    else if (d) switch (name) {
        case SAFETY_SWITCH:
            if (d->has_switch) *out = closed(d);
            else raise_error(INVALID_ENUM, 0, current);
            break;
        case CURRENT_BUTTONS: *out = (int)d->reading[22]; break;
        case UPDATE_RATE: *out = (int)rate; break;
        case INPUT_DOF: *out = 6; break;
        case OUTPUT_DOF: *out = 3; break;
        case CALIBRATION_STYLE: *out = (int)d->styles; break;
        default: refuse(INVALID_ENUM);
    }
    if (d && name == CURRENT_BUTTONS && !d->in_frame) refuse(FRAME_ERROR);
    pthread_mutex_unlock(&lock);
}

const char *hdGetString(HDenum name) {
    const char *text = "";
    pthread_mutex_lock(&lock);
    Device *d = current_device();
    if (d) switch (name) {
        case MODEL_TYPE: text = d->model; break;
        case VENDOR: text = "3D Systems"; break;
        case DRIVER_VERSION: text = d->driver; break;
        case SERIAL_NUMBER: text = d->serial; break;
        default: refuse(INVALID_ENUM);
    }
    pthread_mutex_unlock(&lock);
    return text;
}

void hdSetDoublev(HDenum name, const double *values) {
    pthread_mutex_lock(&lock);
    Device *d = current_device();
    if (d && name != CURRENT_FORCE) refuse(INVALID_ENUM);
    else if (d && !d->in_frame) refuse(ILLEGAL_BEGIN);
    else if (d && !isfinite(values[0] + values[1] + values[2])) refuse(INVALID_VALUE);
    else if (d) memcpy(d->force, values, sizeof d->force);
    pthread_mutex_unlock(&lock);
}

HDenum hdCheckCalibration(void) {
    pthread_mutex_lock(&lock);
    Device *d = current_device();
    HDenum status = d ? calibration_of(d) : CALIBRATION_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

void hdUpdateCalibration(HDenum style) {
    pthread_mutex_lock(&lock);
    Device *d = current_device();
    double force = d ? fabs(d->applied[0]) + fabs(d->applied[1]) + fabs(d->applied[2]) : 0.0;
    if (d && (d->in_frame || force > 0.0)) refuse(INVALID_OPERATION); /* between two frames, at no force */
    else if (d && !(style & d->styles)) refuse(INVALID_VALUE);
    else if (d && d->calibration == CALIBRATION_NEEDS_UPDATE) {
        d->calibration = CALIBRATION_OK;
        d->updates++;
        for (int i = 0; i < 3; i++) d->shift[i] += d->jump[i];
    }
    pthread_mutex_unlock(&lock);
}

/* ---- the scheduler */

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static Job *next_job(void) {
    Job *best = NULL;
    for (Job *job = jobs; job < jobs + JOBS; job++)
        if (job->used && job->served < ticks && (!best || job->priority > best->priority)) best = job;
    return best;
}

/* Call every job once, the highest priority first; the lock is released while one runs. */
static void serve(void) {
    Job *job;
    tick_began = now();
    if (held_us) usleep((useconds_t)held_us);
    pthread_mutex_lock(&lock);
    ticks++;
    while (ticks <= stall_at && !(ticks >= drop_from && ticks < drop_until) && (job = next_job())) {
        job->served = ticks;
        job->busy = 1;
        pthread_mutex_unlock(&lock);
        while (ticks >= hang_at) usleep(1000);
        HDCallbackCode code = job->call(job->data);
        pthread_mutex_lock(&lock);
        job->busy = 0;
        if (!code) job->used = 0;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
}

/* Move a deadline past the whole periods by which it is late; their number. */
static long skip(long *deadline, long period) {
    long late = now() - *deadline, lost = late > 0 ? late / period : 0;
    *deadline += lost * period;
    return lost;
}

/* A period is lost to the callbacks if they have not returned by its end, else to the machine. */
static void *schedule(void *unused) {
    long deadline = now();
    while (running) {
        long period = real_period ? real_period : 1000000000L / (long)rate;
        deadline += period;
        overrun += skip(&deadline, period);
        struct timespec t = {deadline / 1000000000L, deadline % 1000000000L};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        stolen += skip(&deadline, period);
        serve();
    }
    return unused;
}

void hdStartScheduler(void) {
    struct sched_param priority = {.sched_priority = 80};
    pthread_mutex_lock(&lock);
    int already = running;
    if (already) refuse(INVALID_OPERATION);
    running = 1;
    pthread_mutex_unlock(&lock);
    if (already) return;
    starts++;
    pthread_create(&thread, NULL, schedule, NULL);
    pthread_setschedparam(thread, SCHED_FIFO, &priority); /* as a driver does, where it may */
}

double hdGetSchedulerTimeStamp(void) { return 1e-9 * (double)(now() - tick_began); }

void hdStopScheduler(void) {
    if (!running) return;
    require_thread(0);
    running = 0;
    pthread_join(thread, NULL);
}

void hdSetSchedulerRate(unsigned long hz) {
    pthread_mutex_lock(&lock);
    if (!rate_fixed && (hz == 500 || hz == 1000)) rate = hz;
    else raise_error(INVALID_VALUE, 0, current);
    pthread_mutex_unlock(&lock);
}

unsigned long hdScheduleAsynchronous(HDSchedulerCallback call, void *data, unsigned short priority) {
    unsigned long handle = 0;
    pthread_mutex_lock(&lock);
    while (handle < JOBS && jobs[handle].used) handle++;
    if (handle < JOBS) jobs[handle] = (Job){call, data, priority, 1, 0, ticks};
    else refuse(SCHEDULER_FULL);
    pthread_mutex_unlock(&lock);
    return handle + 1;
}

static void wait_for(unsigned long handle, int until_unused) {
    pthread_mutex_lock(&lock);
    if (handle >= 1 && handle <= JOBS && !pthread_equal(pthread_self(), thread))
        while (running && (jobs[handle - 1].busy || (until_unused && jobs[handle - 1].used)))
            pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void hdUnschedule(unsigned long handle) {
    pthread_mutex_lock(&lock);
    if (handle < 1 || handle > JOBS || !jobs[handle - 1].used) refuse(INVALID_VALUE);
    else jobs[handle - 1].used = 0;
    pthread_mutex_unlock(&lock);
    wait_for(handle, 0);
}

void hdScheduleSynchronous(HDSchedulerCallback call, void *data, unsigned short priority) {
    if (running) wait_for(hdScheduleAsynchronous(call, data, priority), 1);
    else while (call(data)) {}
}

/* ---- the test's side */

void standin_reset(void) {
    hdStopScheduler();
    pthread_mutex_lock(&lock);
    memset(devices, 0, sizeof devices);
    memset(jobs, 0, sizeof jobs);
    devices[0] = (Device){.name = "Default Device", .model = "Touch", .driver = "4.3.0", .serial = "T-0001",
        .max_force = 3.3, .max_continuous = 0.88, .max_stiffness = 1.02, .max_damping = 0.003,
        .workspace = {-210, -110, -85, 210, 205, 130}, .usable = {-80, -60, -35, 80, 60, 35}};
    devices[1] = (Device){.name = "Left Hand", .model = "PHANTOM Desktop", .driver = "4.2.1", .serial = "D-0002",
        .max_force = 7.9, .max_continuous = 1.75, .max_stiffness = 1.48, .max_damping = 0.003,
        .workspace = {-200, -150, -100, 200, 250, 150}, .usable = {-80, -60, -60, 80, 60, 60}};
    for (int k = 0; k < DEVICES; k++) {
        devices[k].connected = 1;
        devices[k].calibration = CALIBRATION_OK;
        devices[k].styles = 2;
        devices[k].unplug_at = devices[k].drift_at = devices[k].block_at = NEVER;
        devices[k].frame_tick = -1;
        devices[k].velocity_limit = 1e9;
        devices[k].closed_from = devices[k].open_from = devices[k].open_until = NEVER;
        devices[k].stylus = (Stylus){.mass = 0.045, .stiffness = 400.0, .damping = 4.0};
    }
    current = INVALID_HANDLE;
    n_errors = 0;
    illegal = starts = ticks = overrun = stolen = real_period = 0;
    stall_at = hang_at = drop_from = drop_until = NEVER;
    rate = 1000;
    no_default = rate_fixed = held_us = 0;
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void) { standin_reset(); }

void standin_connect(int k, int connected) { devices[k].connected = connected; }
/* A device answers to this name only; or nobody may set the scheduler's rate, which is this [Hz]. */
void standin_named(int k, const char *name) { devices[k].name = name, no_default |= k == 0; }
void standin_fixed_rate(int hz) { rate = hz, rate_fixed = 1; }
void standin_calibration(int k, HDenum status, HDenum styles) {
    devices[k].calibration = status;
    devices[k].styles = styles;
}
/* Not calibrated, whatever it is, until its scheduler has made so many frames. */
void standin_ready_after(int k, long calls) { devices[k].ready_after = calls; }
/* The stylus is put into the inkwell: a calibration that needs a hand needs an update only. */
void standin_inkwell(int k) { devices[k].inkwell = 1; }
/* At this frame the calibration needs an update, which moves the origin by x y z [mm]. */
void standin_drift(int k, long frame, double x, double y, double z) {
    devices[k].drift_at = frame;
    devices[k].jump[0] = x, devices[k].jump[1] = y, devices[k].jump[2] = z;
}
int standin_updates(int k) { return devices[k].updates; }
int standin_clamping(int k) { return devices[k].clamping; }
/* A safety switch: closed from a frame on, but for frames [open, until). */
void standin_switch(int k, long closed, long open, long until) {
    devices[k].has_switch = 1;
    devices[k].closed_from = closed, devices[k].open_from = open, devices[k].open_until = until;
}
/* Motors at this share of their largest temperature, which rises by so much a frame. */
void standin_motors(int k, double temperature, double warming) {
    devices[k].has_temperature = 1;
    devices[k].temperature = temperature, devices[k].warming = warming;
}
/* The driver switches the force off at this speed [mm/s]. */
void standin_velocity_limit(int k, double speed) { devices[k].velocity_limit = speed; }
/* A property or capability that this device does not know. */
void standin_refuse(int k, HDenum name) { devices[k].refused[devices[k].n_refused++] = name; }
/* Each frame takes so long to begin [us]; one of them so long [ms]. */
void standin_bus(int k, int us) { devices[k].bus_us = us; }
void standin_block(int k, long frame, int ms) { devices[k].block_at = frame, devices[k].block_ms = ms; }
/* Raise an error at the end of frames [from, until). */
void standin_fault(int k, HDerror code, int internal, long from, long until) {
    devices[k].faults[devices[k].n_faults++] = (Fault){code, internal, from, until};
}
void standin_unplug(int k, long frame) { devices[k].unplug_at = frame; }
void standin_script(int k, const double *readings, long rows) {
    devices[k].script = readings;
    devices[k].script_rows = rows;
}
/* Something else takes so long at the beginning of each tick [us]. */
void standin_held(int us) { held_us = us; }
STYLUS_CONTROLS
/* In these ticks nothing is called. */
void standin_drop(long from, long until) { drop_from = from, drop_until = until; }
void standin_stall(long tick) { stall_at = tick; }
/* From this tick on no callback returns, and whoever waits for one waits for ever. */
void standin_hang(long tick) { hang_at = tick; }
void standin_slow(long period_ns) { real_period = period_ns; }
/* Copy up to max forces [N] that the device applied, one a frame; the number copied. */
long standin_log(int k, double *out, long max) {
    pthread_mutex_lock(&lock);
    long n = devices[k].logged < max ? devices[k].logged : max;
    memcpy(out, logs[k], (size_t)n * sizeof logs[k][0]);
    pthread_mutex_unlock(&lock);
    return n;
}
int standin_output(int k) { return devices[k].output; }
int standin_initialised(int k) { return devices[k].initialised; }
int standin_running(void) { return running; }
/* Ticks, periods lost to the callbacks and to the machine, calls out of order, starts, jobs still scheduled. */
void standin_counts(long *out) {
    long scheduled = 0;
    for (Job *job = jobs; job < jobs + JOBS; job++) scheduled += job->used;
    long counts[6] = {ticks, overrun, stolen, illegal, starts, scheduled};
    memcpy(out, counts, sizeof counts);
}
