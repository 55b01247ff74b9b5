/** Runs the decision core in the safety process: feeds every event to it and carries out the commands that it returns. */
import type { Clock } from '@sluice/sdk'
import { clearance } from '../core/clearance.ts'
import { decide } from '../core/decide.ts'
import type { BodyEvent, RobotCommand, UntimedEvent } from '../core/robot-event.ts'
import { initialState, type RobotLimits, type RobotState, takenMsOf } from '../core/robot-state.ts'
import type { Body, Report } from './body.ts'
import type { KernelMessage, KernelRequest, View } from './messages.ts'

export type SendMessage = (message: KernelMessage) => void

/** The interval at which sensors and layers are asked during a movement. At rest they are not asked. */
const TICK_MS = 10
/** How long a look waits for the sensors. */
const LOOK_MS_MAX = 250
const LOOKS_MAX = 64
const HALT_MS_MAX = 250

const WAYS = [
  ['ahead', 0],
  ['left', Math.PI / 2],
  ['back', Math.PI],
  ['right', -Math.PI / 2],
] as const

/** A request for the sensors' view that has not been answered yet. */
interface Look {
  readonly id: number
  readonly askedAtMs: number
}

export class Kernel {
  readonly #clock: Clock
  readonly #body: Body
  readonly #send: SendMessage
  #state: RobotState
  #looks: readonly Look[] = []
  #halted: Promise<void> = Promise.resolve()
  #isTicking = false
  #isClosing = false

  private constructor(initial: RobotState, clock: Clock, body: Body, send: SendMessage) {
    this.#state = initial
    this.#clock = clock
    this.#body = body
    this.#send = send
  }

  /**
   * Opens the robot and halts its motors before anything else. `latched` is the reason that forbids movements until a person
   * resets the robot. Rejects when the sensors or the motors are not available.
   */
  static async start(
    { limits, latched }: { readonly limits: RobotLimits; readonly latched: string | null },
    clock: Clock,
    openBody: (report: Report) => Promise<Body>,
    send: SendMessage,
  ): Promise<Kernel> {
    let kernel: Kernel | undefined
    const early: BodyEvent[] = []
    const body = await openBody((event) => (kernel ? kernel.#step(event) : void early.push(event)))
    kernel = new Kernel(initialState(limits, clock.monotonicMs(), latched), clock, body, send)
    kernel.#step({ kind: 'stop', why: 'the safety process has just started' })
    for (const event of early) kernel.#step(event)
    return kernel
  }

  /** Handles a request of the daemon. Ignores it while closing, because nothing would watch over a movement then. */
  handle(message: KernelRequest): void {
    if (this.#isClosing) return
    // A change of the emergency stop may not have been reported yet.
    if (message.kind === 'reset') this.#body.poll()
    if (message.kind !== 'look') this.#step(message)
    if (message.kind === 'stop') void this.#untilHalted().then(() => this.#send({ kind: 'stopped', id: message.id }))
    if (message.kind === 'look' || message.kind === 'reset') this.#look(message.id)
  }

  /** Halts the motors and releases the robot. Resolves within half a second, whether or not that worked. */
  async close(why: string): Promise<void> {
    this.#isClosing = true
    this.#step({ kind: 'stop', why })
    await this.#untilHalted()
    await Promise.race([this.#body.close(), this.#clock.sleep(HALT_MS_MAX)])
  }

  #untilHalted(): Promise<void> {
    return Promise.race([this.#halted, this.#clock.sleep(HALT_MS_MAX)])
  }

  #step(event: UntimedEvent): void {
    const { state, commands } = decide(this.#state, { ...event, atMs: this.#clock.monotonicMs() })
    const isNewFault = this.#state.fault === null && state.fault !== null
    this.#state = state
    // The motors get their commands before the daemon gets its messages.
    for (const command of commands) this.#drive(command)
    for (const command of commands) if (command.kind !== 'run' && command.kind !== 'halt') this.#send(command)
    if (isNewFault) this.#send({ kind: 'faulted', why: state.fault ?? '' })
    this.#answerLooks()
    if (this.#state.move || this.#looks.length > 0) void this.#tick()
  }

  #drive(command: RobotCommand): void {
    if (command.kind === 'run') this.#body.drive.run(command.velocity, command.forMs)
    if (command.kind === 'halt') this.#halted = this.#body.drive.halt()
  }

  async #tick(): Promise<void> {
    if (this.#isTicking) return
    this.#isTicking = true
    while (this.#state.move || this.#looks.length > 0) {
      this.#body.poll()
      await this.#clock.sleep(TICK_MS)
      this.#step({ kind: 'tick' })
    }
    this.#isTicking = false
  }

  #look(id: number): void {
    if (this.#looks.length >= LOOKS_MAX) return
    this.#looks = [...this.#looks, { id, askedAtMs: this.#clock.monotonicMs() }]
    void this.#tick()
  }

  #answerLooks(): void {
    const { limits, nowMs } = this.#state
    const isAnswered = ({ askedAtMs }: Look) =>
      nowMs - askedAtMs >= LOOK_MS_MAX || limits.sensors.every(({ name }) => takenMsOf(this.#state, name) >= askedAtMs)
    const answered = this.#looks.filter(isAnswered)
    if (answered.length === 0) return
    this.#looks = this.#looks.filter((look) => !answered.includes(look))
    const view = viewOf(this.#state)
    for (const { id } of answered) this.#send({ kind: 'seen', id, view })
  }
}

const viewOf = (state: RobotState): View => ({
  isEstopPressed: state.isEstopPressed,
  latched: state.latched,
  fault: state.fault,
  pressed: state.pressed,
  isMoving: state.running !== null,
  ways: WAYS.map(([way, heading]) => ({ way, ...clearance(state, heading) })),
  sensors: state.limits.sensors.map(({ name }) => {
    const takenMs = state.readings[name]?.takenMs
    return { name, ageMs: takenMs === undefined ? null : state.nowMs - takenMs }
  }),
})
