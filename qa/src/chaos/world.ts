/** The world around the daemon, in this process: the platforms, a model, and a server on which tools have their effects. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type FakeProvider, startFakeProvider } from '@sluice/testkit/fake-provider'
import type { Random } from '@sluice/testkit/random'
import { injectFaults } from './faults.ts'
import type { CallResult, History } from './history.ts'
import type { Kind } from './kind.ts'
import { lineCommand, markIn, partsIn, replyOf } from './marks.ts'
import { type Asked, type Model, type ModelAnswer, startModel } from './model.ts'
import { createRecorder, type Recorder } from './recorder.ts'
import { type KindsOptions, startKinds } from './start-kinds.ts'
import { UNLIMITED } from './unlimited.ts'

const MODEL_MS_MAX = 60
/** Parts of the texts that the agent gives the model in place of a result. */
export const NOT_RUN = 'Not run'
const MAYBE_RUN = 'may or may not have taken effect'

export interface World {
  readonly kinds: readonly [Kind, ...Kind[]]
  readonly recorder: Recorder
  readonly model: Model
  /** The configuration of a daemon in this world, as TOML. */
  readonly config: string
  /** `on`: platforms fail now and then. `away`: all of them refuse every request. Both are false at first. */
  readonly faults: { on: boolean; away: boolean }
  history(): History
  close(): Promise<void>
}

export interface WorldOptions {
  /** The model answers once it resolves; default: within `MODEL_MS_MAX`. Requests are recorded in any case. */
  readonly answer?: (mark: string) => Promise<void>
  /** `[delivery] max_attempts`. */
  readonly attemptsMax?: number
  /** `[delivery] max_pending`. */
  readonly pendingMax?: number
  /** `[agent] max_concurrent_turns`. */
  readonly turnsAtOnce?: number
  /** `[agent] model_timeout_secs`. */
  readonly modelSecs?: number
  /** Default: all kinds, without links. */
  readonly kinds?: KindsOptions
}

export async function startWorld(
  random: Random,
  { answer, attemptsMax = 5, pendingMax = 10_000, turnsAtOnce = 8, modelSecs = 300, kinds: kindsOptions }: WorldOptions = {},
): Promise<World> {
  const recorder = createRecorder()
  const faults = { on: false, away: false }
  const kinds = await startKinds(kindsOptions)
  for (const { name, provider, textIn } of kinds) {
    if (!provider) continue
    injectFaults(provider, { channel: name, random, recorder, isOn: () => faults.on, isAway: () => faults.away, ...(textIn && { textIn }) })
  }
  const effects = await startEffects(recorder)
  const wait = answer ?? (() => sleep(random.within(0, MODEL_MS_MAX)))

  const model = await startModel(async ({ mark = '', afterTool, results, problem }: Asked): Promise<ModelAnswer> => {
    const message = recorder.messages.get(mark)
    if (!message) {
      recorder.see({ type: 'unexpected', detail: `the model got a request without a message of the run: ${problem ?? mark}` })
      return { text: 'What?' }
    }
    recorder.see({
      type: 'asked',
      mark,
      afterTool,
      ...((message.gate || message.usesTool) && afterTool && { result: callResult(results.at(-1) ?? '') }),
    })
    await wait(mark)
    if (message.gate && !afterTool) return { tool: 'shell', input: { command: lineCommand(mark) } }
    if (!message.usesTool || afterTool) return { text: replyOf(message) }
    return { tool: 'http_request', input: { url: `${effects.url}/${mark}`, method: 'POST', body: mark } }
  })

  return {
    kinds,
    recorder,
    model,
    config: [daemonConfig(model, { attemptsMax, pendingMax, turnsAtOnce, modelSecs }), ...kinds.map(({ config }) => config)].join('\n\n'),
    faults,
    history: () => ({
      attemptsMax,
      dropRepeats: kinds.filter(({ dropsRepeats }) => dropsRepeats).map(({ name }) => name),
      messages: [...recorder.messages.values()],
      seen: recorder.seen,
      delivered: deliveredTo(kinds),
    }),
    async close() {
      await Promise.all(kinds.map(({ link }) => link?.close()))
      await Promise.all([model, effects, ...kinds.flatMap(({ provider }) => provider ?? [])].map((server) => server.close()))
    },
  }
}

function callResult(text: string): CallResult {
  if (markIn(text) !== undefined) return 'ran'
  if (text.includes(NOT_RUN)) return 'refused'
  return text.includes(MAYBE_RUN) ? 'interrupted' : 'other'
}

const startEffects = (recorder: Recorder): Promise<FakeProvider> =>
  startFakeProvider(({ path }) => {
    recorder.see({ type: 'effect', mark: path.slice(1) })
    return { status: 200, body: { done: path.slice(1) } }
  })

type Numbers = Readonly<Record<'attemptsMax' | 'pendingMax' | 'turnsAtOnce' | 'modelSecs', number>>

const daemonConfig = ({ url }: Model, { attemptsMax, pendingMax, turnsAtOnce, modelSecs }: Numbers): string => `[gateway]
require_pairing = false
webhook_rate_limit_per_minute = 0
idempotency_ttl_secs = 86400
idempotency_max_keys = 1000000

[delivery]
max_attempts = ${attemptsMax}
max_pending = ${pendingMax}

[provider]
kind = "openai"
base_url = "${url}"
model = "chaos"

[agent]
model_timeout_secs = ${modelSecs}
max_history_messages = 6
max_concurrent_turns = ${turnsAtOnce}

${UNLIMITED}

[http]
allow_private = ["127.0.0.1"]

[tools.http_request]
allowed_domains = ["127.0.0.1"]

[security.policy]
level = "supervised"
auto_approve = ["http_request"]
always_ask = ["shell"]
allowed_commands = ["echo", "tee"]

[approvals]
channels = ["dashboard"]
tool_timeout_secs = 86400

[security.sandbox]
enabled = false`

const deliveredTo = (kinds: readonly Kind[]): History['delivered'] =>
  kinds.flatMap(({ name, delivered }) => delivered().map((text) => ({ channel: name, parts: partsIn(text) })))
