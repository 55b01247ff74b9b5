/** Plays a recorded day of a busy room, and the same mentions as direct messages, and counts turns and input tokens of both. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSluice } from '@sluice/daemon'
import offline from '@sluice/provider-offline'
import openai from '@sluice/provider-openai'
import { type Channel, type Deliver, defineFeature, type Inbound } from '@sluice/sdk'
import { type ModelRequest, type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import * as v from 'valibot'

/** The length of a token in characters, as both sides of a comparison count it. */
const TOKEN_CHARS = 4
const ACCOUNT = 'bot'
const SECTION = { path: 'channels_config.x-room', schema: v.object({}) }
const SUBJECTS = ['the release', 'lunch', 'the build', 'that ticket', 'the review', 'the demo']
const VERBS = ['is done', 'looks good to me', 'needs another look', 'can wait until Monday', 'broke again this morning']

export interface RoomDay {
  readonly people: number
  readonly messages: number
  readonly mentions: number
}

export interface Counted {
  readonly turns: number
  /** The estimated tokens of all requests to the model. */
  readonly tokens: number
}

/** Message `at` of a day: evenly spread mentions among lines of small talk. */
function messageAt({ people, messages, mentions }: RoomDay, at: number): Inbound {
  const isMention = Math.floor(((at + 1) * mentions) / messages) > Math.floor((at * mentions) / messages)
  const words = `${SUBJECTS[at % SUBJECTS.length]} ${VERBS[(at * 7) % VERBS.length]} (${at})`
  const sender = `person-${at % people}`
  const addressed = isMention ? 'mention' : 'overheard'
  return { id: `m${at}`, account: ACCOUNT, sender, name: `Person ${at % people}`, to: { to: 'room' }, text: words, addressed }
}

const dayOf = (day: RoomDay): Inbound[] => Array.from({ length: day.messages }, (_, at) => messageAt(day, at))

/** The direct messages of one person: each has the words of the mention, after the lines that the room overhears before it. */
function directly(day: RoomDay): Inbound[] {
  let heard: string[] = []
  return dayOf(day).flatMap((message) => {
    if (message.addressed === 'overheard') {
      heard = [...heard, `${message.name} (${message.sender}): ${message.text}`].slice(-50)
      return []
    }
    const text = [...heard, message.text].join('\n')
    heard = []
    return [{ ...message, sender: 'person-0', name: 'Person 0', to: { to: 'person-0' }, text, addressed: 'direct' as const }]
  })
}

export async function countRoom(day: RoomDay): Promise<{ readonly room: Counted; readonly direct: Counted }> {
  return { room: await play(dayOf(day)), direct: await play(directly(day)) }
}

async function play(messages: readonly Inbound[]): Promise<Counted> {
  const dataDir = mkdtempSync(join(tmpdir(), 'room-'))
  let tokens = 0
  const model = await startModelServer({
    apiKey: null,
    answer({ body }: ModelRequest) {
      tokens += Math.ceil(JSON.stringify(body).length / TOKEN_CHARS)
      return { text: 'Noted.' }
    },
  })
  try {
    return { turns: await run(dataDir, model, messages), tokens }
  } finally {
    await model.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Resolves to the number of answers. Each message waits until the answer to the one before it was sent. */
async function run(dataDir: string, model: ModelServer, messages: readonly Inbound[]): Promise<number> {
  const connected = Promise.withResolvers<Deliver>()
  let answers = 0
  let onAnswer = (): void => {}
  const channel: Channel = {
    name: 'x-room',
    allow: Array.from({ length: 1000 }, (_, at) => `person-${at}`),
    limits: { text: 4000, unit: 'utf16' },
    async send() {
      answers += 1
      onAnswer()
      return { id: `answer-${answers}` }
    },
    listen(deliver, { signal }) {
      connected.resolve(deliver)
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    },
  }
  const sluice = await createSluice({
    features: [offline, openai, defineFeature({ id: 'x-room', section: SECTION, build: () => ({ channels: [channel] }) })],
    dataDir,
    logger: false,
    config: {
      provider: { kind: 'openai', base_url: `${model.url}/v1`, model: 'small', context_window: 400_000 },
      limits: { loop_turns: 0 },
      // Each message has an answer before the next one comes, so that a longer wait would find no more of them.
      channels_config: { 'x-room': { batch_ms: 1 } },
    },
  })
  try {
    await sluice.call({ method: 'PUT', path: `/api/rooms/${encodeURIComponent(`x-room/${ACCOUNT}/room`)}`, body: { respond: 'mention' } })
    const deliver = await connected.promise
    for (const message of messages) {
      const answered = new Promise<void>((resolve) => {
        onAnswer = resolve
      })
      await deliver(message)
      if (message.addressed !== 'overheard') await answered
    }
    return answers
  } finally {
    await sluice.close()
  }
}
