/** An agent whose turns end when a test says so. Its turns outlive a simulated crash, like stored turns. */
import { AppError, type Risk, type ToolContext, type ToolReport } from '@sluice/sdk'
import type { SopAgent, StepCallRequest, StepTurnRequest, TurnOutcome } from '../run/engine-ports.ts'

export interface FakeTurn {
  readonly id: string
  readonly session: string
  readonly text: string
  readonly tools: readonly string[] | undefined
  status: TurnOutcome['status']
  response: string | null
  error: TurnOutcome['error']
  /** The number of times it was started. */
  starts: number
  /** Whether it has taken effect, before or after a restart. */
  hasActed: boolean
  /** Whether a model has answered since it was last started. */
  hasAnswer: boolean
}

export interface FakeTool {
  readonly risk: Risk
  /** True: the tool waits for an approval that never comes. */
  readonly asks?: boolean
  run(input: unknown, context: Pick<StepCallRequest, 'signal' | 'turn' | 'callId'> & Pick<ToolContext, 'report'>): Promise<string>
}

/** Tools are added to `tools`; a turn ends by `end`. */
export class FakeAgent implements SopAgent {
  readonly turns: Map<string, FakeTurn>
  readonly tools: Map<string, FakeTool> = new Map()
  /** The requested tool calls, in order. */
  readonly calls: {
    readonly tool: string
    readonly input: unknown
    readonly turn: string
    readonly callId: string
    readonly agent: string
  }[] = []
  /** The turns of this process, each with the callbacks for its end. */
  readonly #live = new Map<string, (() => void)[]>()
  /** The next `accept` throws this error. */
  refusal: Error | undefined

  /** `kept` holds the turns of the previous process. The unfinished ones are resumed. */
  constructor(kept: Map<string, FakeTurn> = new Map()) {
    this.turns = kept
    for (const turn of kept.values()) {
      if (turn.status !== 'queued') continue
      turn.starts++
      turn.hasAnswer = false
      this.#live.set(turn.id, [])
    }
  }

  get live(): readonly FakeTurn[] {
    return [...this.turns.values()].filter(({ id }) => this.#live.has(id))
  }

  async get(id: string): Promise<TurnOutcome | undefined> {
    const turn = this.turns.get(id)
    return turn && { ...turn, model: turn.hasAnswer ? 'model' : null }
  }

  async accept({ id, session, text, tools }: StepTurnRequest): Promise<string> {
    const { refusal } = this
    this.refusal = undefined
    if (refusal) throw refusal
    if (this.turns.has(id)) throw new AppError('conflict', 'The turn is known')
    this.turns.set(id, {
      id,
      session,
      text,
      tools,
      status: 'queued',
      response: null,
      error: null,
      starts: 1,
      hasActed: false,
      hasAnswer: false,
    })
    this.#live.set(id, [])
    return id
  }

  ended(id: string): Promise<void> {
    const waiting = this.#live.get(id)
    return waiting ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve()
  }

  abort(id: string): boolean {
    if (!this.#live.has(id)) return false
    this.end(id, { status: 'aborted' })
    return true
  }

  /** Ends a turn of this process. */
  end(id: string, { status, response = null, error = null }: Partial<TurnOutcome> & Pick<TurnOutcome, 'status'>): void {
    const turn = this.turns.get(id)
    const waiting = this.#live.get(id)
    if (!turn || !waiting) throw new Error(`no turn ${id} runs here`)
    Object.assign(turn, { status, response, error, hasAnswer: turn.hasAnswer || status === 'done' })
    this.#live.delete(id)
    for (const resolve of waiting) resolve()
  }

  async call({ tool: name, input, turn, callId, agent, signal, onBegin }: StepCallRequest): ReturnType<SopAgent['call']> {
    this.calls.push({ tool: name, input, turn, callId, agent })
    const tool = this.tools.get(name)
    if (!tool) return { outcome: 'error', output: `There is no tool "${name}".` }
    if (tool.asks) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      throw new AppError('aborted', 'The call was aborted')
    }
    await onBegin?.(tool.risk)
    try {
      let reported: ToolReport = {}
      const report = (given: ToolReport) => {
        reported = given
      }
      const output = await tool.run(input, { signal, turn, callId, report })
      return { outcome: 'ok', output, ...reported }
    } catch (error) {
      if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
      if (error instanceof AppError) return { outcome: 'error', output: error.message }
      throw error
    }
  }
}
