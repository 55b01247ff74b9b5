/** The safety process at work: everything that happens goes through the decision core, and what that says goes to the motors. */
import { type Clock, errorText } from '@sluice/sdk'
import { clearance } from '../core/clearance.ts'
import { decide } from '../core/decide.ts'
import type { RobotCommand, RobotEvent } from '../core/robot-event.ts'
import type { RobotLimits } from '../core/robot-limits.ts'
import { initialState, type RobotState } from '../core/robot-state.ts'
import type { Body, Hear, Noticed } from './body.ts'
import type { FromKernel, ToKernel, View } from './messages.ts'

export interface KernelDeps {
  readonly clock: Clock
  readonly limits: RobotLimits
  readonly latched: string | null
  readonly open: (hear: Hear) => Promise<Body>
  readonly tell: (message: FromKernel) => void
}

/** Between two looks at sensors and layers while something moves; at rest nothing is asked. */
const TICK_MS = 10
/** How long a look around waits for sensors. */
const LOOK_MS_MAX = 250
const LOOKS_MAX = 64
const HALT_MS_MAX = 250

const WAYS = [
  ['ahead', 0],
  ['left', Math.PI / 2],
  ['back', Math.PI],
  ['right', -Math.PI / 2],
] as const

interface Look {
  readonly id: number
  readonly askedAtMs: number
}

export class Kernel {
  readonly #deps: KernelDeps
  readonly #body: Body
  #state: RobotState
  #looks: readonly Look[] = []
  #halted: Promise<void> = Promise.resolve()
  #isTicking = false
  #isClosing = false

  private constructor(deps: KernelDeps, body: Body) {
    this.#deps = deps
    this.#body = body
    this.#state = initialState(deps.limits, deps.clock.monotonicMs(), deps.latched)
  }

  /** Halts the motors first of all. Rejects where sensors or motors cannot be had. */
  static async start(deps: KernelDeps): Promise<Kernel> {
    let kernel: Kernel | undefined
    const early: Noticed[] = []
    const body = await deps.open((noticed) => (kernel ? kernel.#step(noticed) : void early.push(noticed)))
    kernel = new Kernel(deps, body)
    kernel.#step({ kind: 'stop', why: 'it begins at rest' })
    for (const noticed of early) kernel.#step(noticed)
    return kernel
  }

  /** What comes once it closes is not taken up: nobody would watch over it. */
  take(message: ToKernel): void {
    if (this.#isClosing) return
    // What a sensor has to tell may still be on its way
    if (message.kind === 'reset') this.#body.poll()
    if (message.kind !== 'look') this.#step(message)
    if (message.kind === 'stop') void this.#soonHalted().then(() => this.#deps.tell({ kind: 'stopped', id: message.id }))
    if (message.kind === 'look' || message.kind === 'reset') this.#look(message.id)
  }

  /** Halts the motors and lets go of everything. Resolves soon, come what may. */
  async close(why: string): Promise<void> {
    this.#isClosing = true
    this.#step({ kind: 'stop', why })
    await this.#soonHalted()
    await Promise.race([this.#body.close(), this.#deps.clock.sleep(HALT_MS_MAX)])
  }

  #soonHalted(): Promise<void> {
    return Promise.race([this.#halted, this.#deps.clock.sleep(HALT_MS_MAX)])
  }

  #step(event: Untimed): void {
    const decision = decide(this.#state, { ...event, atMs: this.#deps.clock.monotonicMs() } as RobotEvent)
    const hadFault = this.#state.fault !== null
    this.#state = decision.state
    // Motors first
    for (const command of decision.commands) this.#drive(command)
    for (const command of decision.commands) this.#tell(command)
    if (this.#state.fault !== null && !hadFault) this.#deps.tell({ kind: 'faulted', why: this.#state.fault })
    this.#answerLooks()
    if (this.#state.move || this.#looks.length > 0) void this.#tick()
  }

  #drive(command: RobotCommand): void {
    if (command.kind === 'run') this.#body.drive.run(command.velocity, command.forMs)
    if (command.kind === 'halt') this.#halted = this.#body.drive.halt()
  }

  #tell(command: RobotCommand): void {
    if (command.kind === 'run' || command.kind === 'halt') return
    this.#deps.tell(command)
  }

  async #tick(): Promise<void> {
    if (this.#isTicking) return
    this.#isTicking = true
    while (this.#state.move || this.#looks.length > 0) {
      this.#body.poll()
      await this.#deps.clock.sleep(TICK_MS)
      this.#step({ kind: 'tick' })
    }
    this.#isTicking = false
  }

  #look(id: number): void {
    if (this.#looks.length >= LOOKS_MAX) return
    this.#looks = [...this.#looks, { id, askedAtMs: this.#deps.clock.monotonicMs() }]
    void this.#tick()
  }

  #answerLooks(): void {
    const { limits, sights, nowMs } = this.#state
    const isAnswered = ({ askedAtMs }: Look) =>
      nowMs - askedAtMs >= LOOK_MS_MAX ||
      limits.sensors.every(({ name }) => (sights[name]?.takenMs ?? Number.NEGATIVE_INFINITY) >= askedAtMs)
    const answered = this.#looks.filter(isAnswered)
    if (answered.length === 0) return
    this.#looks = this.#looks.filter((look) => !answered.includes(look))
    const view = viewOf(this.#state)
    for (const { id } of answered) this.#deps.tell({ kind: 'seen', id, view })
  }
}

type Untimed =
  | Noticed
  | { readonly kind: 'tick' | 'reset' }
  | { readonly kind: 'stop'; readonly why: string }
  | Extract<ToKernel, { kind: 'move' }>

const viewOf = (state: RobotState): View => ({
  isEstopPressed: state.isEstopPressed,
  latched: state.latched,
  fault: state.fault,
  pressed: state.pressed,
  isMoving: state.running !== null,
  ways: WAYS.map(([way, heading]) => ({ way, ...clearance(state, heading) })),
  sensors: state.limits.sensors.map(({ name }) => {
    const takenMs = state.sights[name]?.takenMs
    return { name, ageMs: takenMs === undefined ? null : state.nowMs - takenMs }
  }),
})

/** What a thrown value of the robot's own parts means to the layers. */
export const faultOf = (part: string, error: unknown): Noticed => ({ kind: 'fault', what: `${part} failed: ${errorText(error)}` })
