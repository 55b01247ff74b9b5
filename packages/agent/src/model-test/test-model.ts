/** Runs the tests of one model. The tools work on files in the memory of this process, and nothing is stored. */
import type { AgentConfig, CostConfig } from '@sluice/config'
import { signalScope } from '@sluice/kit'
import {
  AppError,
  type Clock,
  type LanguageModel,
  type ModelCallOptions,
  type ModelUsage,
  type ProviderSettings,
  type Usage,
} from '@sluice/sdk'
import { addUsage, isBilled, NO_USAGE, usageOf } from '../model/call-model.ts'
import { limitsOf } from '../model/endpoint-limits.ts'
import { judge, type ModelFailure, modelFailure } from '../model/model-failure.ts'
import { generateReply, type ModelReply, ReplyDraft, streamReply, UNCOUNTED } from '../model/model-reply.ts'
import { Cancellation } from '../turn/cancellation.ts'
import type { Scrub } from '../turn/scrub.ts'
import type { ModelTestResult } from './report.ts'
import type { TaskSurroundings } from './task-agent.ts'
import { MODEL_TASKS, MODEL_TESTS, MODEL_TESTS_AND_TASKS, type ModelTestName } from './test-names.ts'
import { type AskOnce, type ModelTest, modelTests, NotSupported } from './tests.ts'

export interface ModelTestOptions {
  /** Loads the model; called once. */
  load(onLimit: (label: string) => void): Promise<LanguageModel>
  readonly settings: ProviderSettings
  readonly agent: AgentConfig
  readonly prices: CostConfig['prices']
  /** The tests to run; default: the tests without the tasks. */
  readonly tests?: readonly ModelTestName[] | undefined
  readonly clock: Clock
  readonly scrub: Scrub
  readonly signal: AbortSignal
  /** The parts of the agent that the tasks use. Without it, no task runs. */
  readonly tasks?: Pick<TaskSurroundings, 'tools' | 'policy' | 'systemPrompt'>
  /** Called before each request. A rejection ends the tests. */
  beforeRequest?(): Promise<void>
  /** Called after each request that the provider may charge for, also in a test that is aborted. */
  onUsage?(usage: Usage): void
  /** Called after each test. */
  onResult(result: ModelTestResult): void
}

/** The longest reply: room for the reasoning of a model. */
const OUTPUT_TOKENS_MAX = 2000

/**
 * Resolves to the limits that the model has shown. Without any answer in the first one that runs, the others do not run. Rejects with
 * `config_invalid` when the model cannot be loaded, as `beforeRequest` does, and with `aborted` when the signal aborts.
 */
export async function testModel(options: ModelTestOptions): Promise<readonly string[]> {
  const { clock, tests = MODEL_TESTS, onResult } = options
  const limits: string[] = []
  const model = await options.load((label) => void limits.push(label))
  const known = await knownTests(options, tests)
  let answers = 0
  for (const test of MODEL_TESTS_AND_TASKS.filter((name) => tests.includes(name))) {
    const run = known[test]
    if (!run) continue
    const asker = new Asker(options, model)
    const startedAtMs = clock.monotonicMs()
    const ended = await run(asker.ask).then(
      (detail) => ({ outcome: 'ok' as const, detail: detail + mediaHint(test, options.settings) }),
      (error: unknown) => outcomeOf(error, { test, limits, options }),
    )
    onResult({ test, ...ended, tookMs: Math.round(clock.monotonicMs() - startedAtMs), usage: asker.usage })
    answers += asker.answers
    if (answers === 0 && ended.outcome === 'failed') break
  }
  return limits
}

/** Without a task, the code of the tasks is not loaded. */
async function knownTests(
  { tasks, scrub, signal }: ModelTestOptions,
  wanted: readonly ModelTestName[],
): Promise<Partial<Record<ModelTestName, ModelTest>>> {
  if (!tasks || !MODEL_TASKS.some((name) => wanted.includes(name))) return modelTests()
  const { modelTasks } = await import('./tasks.ts')
  return { ...modelTests(), ...modelTasks({ ...tasks, scrub, signal }) }
}

/** The tests that need no tool. */
const TALK: readonly ModelTestName[] = ['text', 'streaming', 'image', 'picture', 'two_languages', 'long_conversation']

/** A model of an endpoint that is not known to read images gets them only if the settings say so. */
const mediaHint = (test: ModelTestName, { media = [] }: ProviderSettings): string =>
  (test !== 'image' && test !== 'picture') || media.includes('image')
    ? ''
    : '; to give it the images of messages, add media = ["image"] to its settings'

/** Tells how a test has ended. Throws an error that ends the whole run. */
function outcomeOf(
  error: unknown,
  { test, limits, options }: { readonly test: ModelTestName; readonly limits: readonly string[]; readonly options: ModelTestOptions },
): Pick<ModelTestResult, 'outcome' | 'detail'> {
  if (error instanceof RunEnded) throw error.reason
  const needsTools = !TALK.includes(test)
  const refusesTools = needsTools && limits.find((label) => label.includes('tools'))
  if (refusesTools) return { outcome: 'not_supported', detail: `the endpoint says that the model ${refusesTools}` }
  if (error instanceof NotSupported) return { outcome: 'not_supported', detail: options.scrub(error.message) }
  if (!(error instanceof RequestFailed)) return { outcome: 'failed', detail: options.scrub((error as Error).message) }
  const { reason, kind, repeat } = error.failure
  // The endpoint refuses tools or images, unless it has refused the text before.
  const isRefused = (needsTools || test === 'image' || test === 'picture') && kind === 'provider' && repeat === 'never'
  return { outcome: isRefused ? 'not_supported' : 'failed', detail: `the endpoint ${reason}` }
}

class RequestFailed extends Error {
  readonly failure: ModelFailure

  constructor(failure: ModelFailure) {
    super(failure.reason)
    this.failure = failure
  }
}

/** Ends the run with an error of its own: the budget or the abort. */
class RunEnded extends Error {
  readonly reason: unknown

  constructor(reason: unknown) {
    super('the tests have ended')
    this.reason = reason
  }
}

/** Sends the requests of one test and adds up their tokens. */
class Asker {
  usage: Usage = NO_USAGE
  /** The number of replies. */
  answers = 0
  readonly #options: ModelTestOptions
  readonly #model: LanguageModel

  constructor(options: ModelTestOptions, model: LanguageModel) {
    this.#options = options
    this.#model = model
  }

  readonly ask: AskOnce = async ({ prompt, tools, onPiece }) => {
    const { clock, settings, agent, prices, scrub, signal, beforeRequest, onUsage } = this.#options
    const { max_output_tokens, temperature, reasoning, model_timeout_secs } = limitsOf(agent, settings)
    await beforeRequest?.().catch((error: unknown) => {
      throw new RunEnded(error)
    })
    using limit = signalScope([signal], model_timeout_secs * 1000, clock)
    const call = new Cancellation()
    const cancel = () =>
      call.cancel(limit.timedOut ? new AppError('upstream_timeout', `did not answer within ${model_timeout_secs} s`) : ABORTED)
    if (limit.signal.aborted) cancel()
    limit.signal.addEventListener('abort', cancel, { once: true })
    const options = {
      prompt,
      abortSignal: call.signal,
      maxOutputTokens: Math.min(max_output_tokens ?? OUTPUT_TOKENS_MAX, OUTPUT_TOKENS_MAX),
      ...(temperature !== undefined && { temperature }),
      ...(reasoning !== undefined && { reasoning }),
      ...(tools && { tools: [...tools], toolChoice: { type: 'auto' as const } }),
    }
    const draft = new ReplyDraft()
    const count = (usage: ModelUsage): void => {
      const called = { provider: settings.kind, model: this.#model.modelId, prompt, tools: tools ?? [], arrived: draft }
      const cost = usageOf(prices, usage, called)
      this.usage = addUsage(this.usage, cost)
      onUsage?.(cost)
    }
    try {
      const reply = await (onPiece ? this.#stream(options, call, { onPiece, draft }) : generateReply(this.#model, options, call, draft))
      this.answers++
      count(reply.usage)
      const failure = judge(reply)
      if (failure) throw new RequestFailed(failure)
      return reply
    } catch (error) {
      if (error instanceof RequestFailed) throw error
      if (isBilled(call, draft)) count(UNCOUNTED)
      if (signal.aborted) throw new RunEnded(ABORTED)
      if (limit.timedOut) throw new RequestFailed({ reason: call.reason?.message ?? '', repeat: 'often', kind: 'timeout' })
      throw new RequestFailed(modelFailure(error, { nowMs: clock.nowMs(), scrub }))
    }
  }

  #stream(
    options: ModelCallOptions,
    call: Cancellation,
    { onPiece, draft }: { readonly onPiece: () => void; readonly draft: ReplyDraft },
  ): Promise<ModelReply> {
    return streamReply(this.#model, options, call, { hear: (type) => type === 'text' && onPiece(), alive: () => undefined, draft })
  }
}

const ABORTED = new AppError('aborted', 'The tests were aborted')
