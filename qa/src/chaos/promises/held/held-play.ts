/**
 * Work that is held back: runs that wait for others of their procedure or for a person, messages that the model refuses, whose senders and
 * operators get a notice, and replies of which the platform refuses a part.
 */
import { DISCORD_BOT, DISCORD_CHANNEL, DISCORD_TOKEN, startDiscordFake } from '@sluice/channel-discord/testing'
import { SLACK_APP_TOKEN, SLACK_BOT, SLACK_BOT_TOKEN, startSlackFake } from '@sluice/channel-slack/testing'
import { startTelegramFake, TELEGRAM_FORUM, TELEGRAM_GROUP, TELEGRAM_TOKEN } from '@sluice/channel-telegram/testing'
import { type FakeProvider, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import { type ModelRequest, type ModelStep, startModelServer } from '@sluice/testkit/model-server'
import { markIn, markOf } from '../../marks.ts'
import { ask, pause } from '../../request.ts'
import { readView } from '../../sops/read-view.ts'
import type { ActedLife, Play, PlayOptions } from '../play.ts'
import { readWords, saidMarks } from '../read-words.ts'
import { settings } from '../settings.ts'
import type { HeldRecord, HeldSend } from './held-record.ts'
import { judgeMessages } from './judge-messages.ts'
import { judgeRuns } from './judge-runs.ts'
import { type Fallback, type HeldMessage, hasMarkup, PLATFORM_REFUSALS, REFUSALS, type Refusal } from './messages.ts'
import { HELD_PATHS, writeHeldProcedures } from './procedures.ts'

const AGENTS = 40
/** The first of the people whose messages the model refuses. Each writes once, because a conversation gets one notice an hour. */
const FIRST_PERSON = 30_000
const SLACK_PEOPLE = ['UADA', 'UBOB', 'UCLEO', 'UDAN'] as const
const FORUM_PEOPLE = [2001, 2002, 2003, 2004] as const
const DISCORD_PEOPLE = ['400000000000000011', '400000000000000012', '400000000000000013'] as const
/** A topic of the forum that was deleted. */
const GONE_TOPIC = 9
const LIFE_MS_MAX = 1800
const MODEL_MS_MAX = 40
const EFFECT_MS_MAX = 60
const ACTS = { min: 4, max: 9 }
const SHARE = { event: 0.15, refused: 0.4, decided: 0.6, approved: 0.8 }
const GAP_MS_MAX = 60
const POLL_MS = 60
const GREETING_MS = 2000
const FALLBACKS: readonly Fallback[] = ['telegram topic', 'telegram markup', 'slack markup', 'discord quote']
const REFUSED: readonly [Refusal, ...Refusal[]] = ['request', 'key', 'quota']

export async function startHeld({ random, aims, loops }: PlayOptions): Promise<Play> {
  const messages = new Map<string, HeldMessage>()
  const events = new Map<string, string>()
  const unposted = new Set<{ readonly mark: string; readonly path: string }>()
  const effects: string[] = []
  const sends: HeldSend[] = []
  const asked = new Set<string>()
  let [number, people, life, greetedMs] = [0, 0, 0, Number.NEGATIVE_INFINITY]
  const [telegram, slack, discord] = await Promise.all([
    startTelegramFake({
      chats: [
        { id: TELEGRAM_GROUP, type: 'group' },
        { id: TELEGRAM_FORUM, type: 'supergroup', threads: [7, 8] },
      ],
    }),
    startSlackFake({ channels: SLACK_PEOPLE.map(slackChat), nowMs: Date.now }),
    startDiscordFake(),
  ])
  const effectServer = await startFakeProvider(async ({ path, body }) => {
    effects.push(`${path.slice(1)} ${body}`)
    aims.reach('effect')
    await pause(random.within(0, EFFECT_MS_MAX), AbortSignal.timeout(60_000))
    return { status: 200, body: { done: true } }
  })
  const model = await startModelServer({ apiKey: null, answer: (request) => answer(request) })

  const watch = (fake: FakeProvider, channel: string, fallback?: 'telegram markup' | 'slack markup'): void => {
    const isSend = ({ path }: ProviderRequest) => /\/(?:sendMessage|chat\.postMessage|messages)$/i.test(path)
    const isWatched = new WeakSet<ProviderRequest>()
    const matches = (request: ProviderRequest): boolean => {
      if (request.method !== 'POST' || !isSend(request)) return false
      if (!isWatched.has(request)) {
        isWatched.add(request)
        sends.push({ channel, body: decodeURIComponent(request.body.toString().replaceAll('+', ' ')), life })
        aims.reach('sending')
      }
      const mark = markIn(request.body.toString())
      return fallback !== undefined && mark !== undefined && messages.get(mark)?.fallback === fallback && hasMarkup(request)
    }
    fake.fail(fallback ? PLATFORM_REFUSALS[fallback] : { fault: 'reset' }, { times: Number.POSITIVE_INFINITY, matches })
  }
  watch(telegram, 'telegram', 'telegram markup')
  watch(slack, 'slack', 'slack markup')
  watch(discord, 'discord')

  async function answer({ lastUserText }: ModelRequest): Promise<ModelStep> {
    const [mark = ''] = saidMarks(lastUserText)
    const message = messages.get(mark)
    asked.add(mark)
    aims.reach('asked')
    await pause(random.within(0, MODEL_MS_MAX), AbortSignal.timeout(60_000))
    // The sender deletes the message that the reply will quote.
    if (message?.fallback === 'discord quote') discord.remove(message.id, DISCORD_CHANNEL)
    aims.reach('answered')
    return message?.refusal ? REFUSALS[message.refusal] : { text: `to ${mark} **part** 1` }
  }

  const add = (message: HeldMessage): void => void messages.set(message.mark, message)

  function writeRefused(): void {
    const [from, mark, refusal] = [FIRST_PERSON + people, markOf(++number), random.pick(REFUSED)]
    const agent = agentOf(people++, loops)
    const { chat, id } = telegram.say({ from: { id: from }, text: `do ${mark}` })
    add({ mark, channel: 'telegram', id: `${chat}:${id}`, chat: String(chat), refusal, agent })
  }

  function writeFallback(): void {
    const [mark, fallback] = [markOf(++number), random.pick(FALLBACKS.filter(isReady))]
    if (fallback === 'discord quote') {
      const text = `<@${DISCORD_BOT}> do ${mark}`
      const id = discord.say({ author: random.pick(DISCORD_PEOPLE), channel: DISCORD_CHANNEL, text })
      add({ mark, channel: 'discord', id, chat: DISCORD_CHANNEL, fallback })
      return
    }
    if (fallback === 'slack markup') {
      const user = random.pick(SLACK_PEOPLE)
      const chat = slackChat(user)
      add({ mark, channel: 'slack', id: `${chat}:${slack.say({ user, channel: chat, text: `do ${mark}` })}`, chat, fallback })
      return
    }
    const from = random.pick(FORUM_PEOPLE)
    const name = `@${telegram.bot.username}`
    const said =
      fallback === 'telegram markup'
        ? telegram.say({ from: { id: from }, text: `do ${mark}` })
        : telegram.say({
            chat: TELEGRAM_FORUM,
            thread: GONE_TOPIC,
            from: { id: from },
            text: `${name} do ${mark}`,
            extra: { entities: [{ type: 'mention', offset: 0, length: name.length }] },
          })
    add({ mark, channel: 'telegram', id: `${said.chat}:${said.id}`, chat: String(said.chat), fallback })
  }

  /** Slack and Discord deliver nothing that was written before the first connection. */
  const isReady = (fallback: Fallback): boolean =>
    fallback === 'slack markup' ? slack.socket.opened > 0 : fallback === 'discord quote' ? isGreeted() : true

  /** Whether the daemon follows the conversation of Discord. It reads only those again in which it has seen a message. */
  function isGreeted(): boolean {
    if (discord.sent.length > 0) return true
    if (discord.connected > 0 && performance.now() - greetedMs > GREETING_MS) {
      greetedMs = performance.now()
      discord.say({ author: DISCORD_PEOPLE[0], channel: DISCORD_CHANNEL, text: `<@${DISCORD_BOT}> hello` })
    }
    return false
  }

  async function write(signal: AbortSignal): Promise<void> {
    for (let left = random.within(ACTS.min, ACTS.max); left > 0 && !signal.aborted; left--) {
      if (random.chance(SHARE.event)) unposted.add({ mark: markOf(++number), path: random.pick(HELD_PATHS) })
      else if (random.chance(SHARE.refused)) writeRefused()
      else writeFallback()
      aims.reach('written')
      await pause(random.within(0, GAP_MS_MAX), signal)
    }
  }

  async function postEvents({ url, signal }: ActedLife): Promise<void> {
    for (const event of unposted) {
      const body = { message: 'go', mark: event.mark }
      const answered = await ask(url, { path: event.path, body, headers: { 'x-idempotency-key': event.mark }, signal })
      if (answered?.status !== 200 || answered.body.state === 'in_flight') continue
      unposted.delete(event)
      events.set(event.mark, event.path)
      aims.reach('posted')
    }
  }

  /** People look at what waits for them, and leave some of it for later. */
  async function decide({ url, signal, isLast }: ActedLife): Promise<void> {
    const answered = await ask(url, { path: '/api/approvals?state=pending&limit=200', signal })
    for (const { run_id, step_id } of (answered?.body.approvals ?? []) as readonly {
      readonly run_id: string
      readonly step_id: string
    }[]) {
      if (!isLast && !random.chance(SHARE.decided)) continue
      // A person who is asked whether a step that was cut may run again says no.
      const approved = !step_id.includes('-again-') && random.chance(SHARE.approved)
      await ask(url, { path: `/api/approvals/${encodeURIComponent(run_id)}/${encodeURIComponent(step_id)}`, body: { approved }, signal })
    }
  }

  return {
    config: config(model.url, { telegram, slack, discord, loops }),
    moments: ['asked', 'answered', 'sending', 'effect', 'posted', 'written'],
    lifeMsMax: LIFE_MS_MAX,
    prepare: (dataDir) => writeHeldProcedures(dataDir, effectServer.url),
    async act(acted) {
      life += 1
      const { signal, isLast } = acted
      const writing = isLast ? undefined : write(signal)
      for (; !signal.aborted; await pause(POLL_MS, signal)) {
        await postEvents(acted)
        await decide(acted)
      }
      await writing
    },
    left() {
      const [unasked] = [...messages.values()].filter(({ mark }) => !asked.has(mark))
      if (unposted.size > 0) return `${unposted.size} events were not accepted`
      return unasked && `${unasked.mark} on ${unasked.channel} did not reach the model`
    },
    async judge(place) {
      const record: HeldRecord = {
        messages: [...messages.values()],
        events,
        effects,
        sends,
        delivered: [
          ...telegram.sent().map(({ chat, text }) => ({ channel: 'telegram', chat: String(chat), text })),
          ...slackTexts().map(({ chat, text }) => ({ channel: 'slack', chat, text })),
          ...discord.sent.map(({ channel_id: chat, content: text }) => ({ channel: 'discord', chat, text })),
        ],
      }
      const [words, view] = [await readWords(place), await readView(place)]
      const tallies = [...judgeMessages(record, words), ...judgeRuns(record, view)]
      const problems = [...words.problems, ...view.problems].map((detail) => ({ rule: 'file', detail }))
      return { rows: tallies.map(({ row }) => row), violations: [...problems, ...tallies.flatMap(({ violations }) => violations)] }
    },
    async close() {
      await Promise.all([telegram, slack, discord, effectServer, model].map((server) => server.close()))
    },
  }

  function slackTexts(): readonly { readonly chat: string; readonly text: string }[] {
    return SLACK_PEOPLE.map(slackChat).flatMap((chat) =>
      slack
        .messages(chat)
        .filter(({ user }) => user === SLACK_BOT.user)
        .map(({ text }) => ({ chat, text })),
    )
  }
}

const slackChat = (user: string): string => user.replace('U', 'D')

/** Each agent has its turn for a part of the run, so that its first refusals come all along the run. */
const PEOPLE_A_LOOP = 1.5
const agentOf = (person: number, loops: number): string => `a${Math.floor((person * AGENTS) / (loops * PEOPLE_A_LOOP)) % AGENTS}`

interface Servers {
  readonly telegram: { readonly url: string }
  readonly slack: { readonly apiUrl: string }
  readonly discord: { readonly apiUrl: string }
  readonly loops: number
}

function config(modelUrl: string, { telegram, slack, discord, loops }: Servers): string {
  const people = Array.from({ length: loops * ACTS.max }, (_, person) => `"${FIRST_PERSON + person}" = "${agentOf(person, loops)}"`)
  const agents = Array.from({ length: AGENTS }, (_, at) => `[agents.a${at}]`)
  return `${settings({ modelUrl })}
[sop]
approval_timeout_secs = 86400
max_concurrent_total = 5
max_finished_runs = 0

[approvals]
channels = ["messenger", "dashboard"]

[notify]
channels = ["messenger"]
kinds = ["refused"]

${agents.join('\n')}

[channels_config.telegram]
bot_token = "${TELEGRAM_TOKEN}"
api_url = "${telegram.url}"
allowed_users = ["*"]
notification_chat_id = "${TELEGRAM_GROUP}"
batch_ms = 0
steering = "queue"
room_agents = { ${people.join(', ')} }

[channels_config.slack]
bot_token = "${SLACK_BOT_TOKEN}"
app_token = "${SLACK_APP_TOKEN}"
api_url = "${slack.apiUrl}"
allowed_users = ["*"]
channel_ids = ${JSON.stringify(SLACK_PEOPLE.map(slackChat))}
batch_ms = 0
steering = "queue"

[channels_config.discord]
bot_token = "${DISCORD_TOKEN}"
api_url = "${discord.apiUrl}"
allowed_users = ["*"]
batch_ms = 0
steering = "queue"
`
}
