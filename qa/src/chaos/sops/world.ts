/** The world around the daemon of a crash run of procedures: a model, a messenger, and a server on which steps have their effects. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startTelegramFake, TELEGRAM_GROUP, TELEGRAM_TOKEN, type TelegramFake } from '@sluice/channel-telegram/testing'
import { type FakeProvider, startFakeProvider } from '@sluice/testkit/fake-provider'
import type { Random } from '@sluice/testkit/random'
import { type Model, startModel } from '../model.ts'
import type { SopsHistory } from './history.ts'
import { createSopsRecorder, type SopsRecorder } from './recorder.ts'
import { scriptedStep } from './script.ts'

/** The people on the messenger. The first two may decide. */
export const PEOPLE = { ada: 1001, bob: 1002, eve: 6666 } as const
/** The time limit of approvals that expire. */
export const APPROVAL_SECS = 3
/** Long enough that some kills come between an effect and its answer. */
const EFFECT_MS_MAX = 90
const MODEL_MS_MAX = 30
const FAILING_SHARE = 0.04
const EFFECT = /^\/(?<sop>[\w-]+)\/(?<step>\d+)$/

export interface SopsWorld {
  readonly recorder: SopsRecorder
  readonly messenger: TelegramFake
  readonly effectsUrl: string
  /** The configuration of a daemon in this world, as TOML. */
  readonly config: string
  /** Whether the model fails now and then; true at first. */
  readonly faults: { on: boolean }
  history(): SopsHistory
  close(): Promise<void>
}

export async function startSopsWorld(random: Random): Promise<SopsWorld> {
  const recorder = createSopsRecorder()
  const faults = { on: true }
  const messenger = await startTelegramFake({ token: TELEGRAM_TOKEN })
  const effects = await startEffects(recorder, random)
  const model = await startModel(async (asked) => {
    await sleep(random.within(0, MODEL_MS_MAX))
    return faults.on && random.chance(FAILING_SHARE) ? { status: 503 } : scriptedStep(asked, random, effects.url)
  })
  return {
    recorder,
    messenger,
    effectsUrl: effects.url,
    config: daemonConfig(model, messenger),
    faults,
    history: () => ({ events: recorder.events, seen: recorder.seen, delivered: messenger.sent().map(({ text }) => text) }),
    async close() {
      await Promise.all([model, effects, messenger].map((server) => server.close()))
    },
  }
}

const startEffects = (recorder: SopsRecorder, random: Random): Promise<FakeProvider> =>
  startFakeProvider(async ({ path, body }) => {
    const { sop, step } = EFFECT.exec(path)?.groups ?? {}
    if (sop === undefined || step === undefined)
      recorder.see({ type: 'unexpected', detail: `a step had an effect at an unknown path: ${path}` })
    else recorder.see({ type: 'effect', sop, step: Number(step), mark: body.toString() })
    await sleep(random.within(0, EFFECT_MS_MAX))
    return { status: 200, body: { done: true } }
  })

const daemonConfig = ({ url }: Model, messenger: TelegramFake): string => `[gateway]
require_pairing = false
webhook_rate_limit_per_minute = 0
idempotency_ttl_secs = 86400
idempotency_max_keys = 1000000

[provider]
kind = "openai"
base_url = "${url}"
model = "chaos"

[agent]
max_retries = 0
max_concurrent_turns = 16

[sop]
take_over = true
approval_timeout_secs = ${APPROVAL_SECS}
max_concurrent_total = 10000
max_finished_runs = 0

[approvals]
channels = ["messenger", "dashboard"]
tool_timeout_secs = ${APPROVAL_SECS}

[channels_config.telegram]
bot_token = "${TELEGRAM_TOKEN}"
api_url = "${messenger.url}"
allowed_users = ["${PEOPLE.ada}", "${PEOPLE.bob}"]
notification_chat_id = "${TELEGRAM_GROUP}"

[http]
allow_private = ["127.0.0.1"]

[tools.http_request]
allowed_domains = ["127.0.0.1"]

[security.policy]
level = "supervised"
auto_approve = ["http_request"]
allowed_commands = ["echo", "tee"]

[security.sandbox]
enabled = false
`
