/**
 * Telephone calls with real speech through a real daemon: flite speaks for the caller and for the agent, and pocketsphinx understands
 * both, over media streams in real time.
 */
import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { hasProgram } from '@sluice/kit'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import type { SectionValues } from '@sluice/testkit/section-values'
import { loudness, toWav } from '@sluice/voice-common'
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type SourceDaemon, startSourceDaemon } from '../../../qa/src/daemons/source-daemon.ts'
import { fromMulaw, fromWav, RATE, toMulaw } from './audio.ts'
import { telnyxState } from './telnyx.ts'
import {
  AUTH_TOKEN,
  BASE_URL,
  formSectionOf,
  OUR_NUMBER,
  sectionOf,
  startVoiceFake,
  telnyxHeaders,
  type VoiceFake,
} from './testing/index.ts'
import { Phone, type ProviderName } from './testing/phone.ts'

const run = promisify(execFile)
const PROGRAMS = ['flite', 'sox', 'pocketsphinx_batch']
const missing = PROGRAMS.filter((name) => !hasProgram(name))
const why = missing.length > 0 ? `; skipped, because ${missing.join(', ')} is missing: apt-get install flite sox pocketsphinx-en-us` : ''

const CALLER = '+15550004444'
const STRANGER = '+15550009999'
/** Sentences that pocketsphinx understands word for word in the bandwidth of a telephone. */
const GREETING = 'the weather is nice today'
const QUESTION = 'we are going to the market'
const ANSWER = 'dinner is ready in ten minutes'
const INTERRUPTION = 'tomorrow is a holiday'
const LONG_REPLY = Array.from({ length: 12 }, () => ANSWER).join('. ')
const WAIT_MS = 90_000

/** Prints the words of a recording of any rate. */
const RECOGNISER = `#!/bin/sh
model=/usr/share/pocketsphinx/model/en-us
sox "$1" -r 16000 wide.wav
echo wide >names
pocketsphinx_batch -adcin yes -adchdr 44 -cepdir . -cepext .wav -ctl names -hmm "$model/en-us" -lm "$model/en-us.lm.bin" \\
  -dict "$model/cmudict-en-us.dict" -hyp said -logfn /dev/null
sed 's/ *([^()]*)$//' said
`

let folder: string
const speech = new Map<string, Uint8Array>()
beforeAll(async () => {
  if (missing.length > 0) return
  folder = await mkdtemp(join(tmpdir(), 'sluice-calls-'))
  await writeFile(join(folder, 'recognise'), RECOGNISER)
  await chmod(join(folder, 'recognise'), 0o755)
  await chmod(folder, 0o755)
  for (const text of [QUESTION, INTERRUPTION]) {
    const file = join(folder, 'said.wav')
    await run('flite', ['-voice', 'rms', '-t', text, '-o', file])
    speech.set(text, toMulaw(fromWav(await readFile(file))))
  }
})
afterAll(async () => {
  if (folder) await rm(folder, { recursive: true, force: true })
})

let fake: VoiceFake
let model: ModelServer
let dataDir: string
let daemon: SourceDaemon | undefined
beforeEach(async () => {
  fake = await startVoiceFake()
  model = await startModelServer({ apiKey: null })
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-calls-'))
})
afterEach(async () => {
  await daemon?.kill()
  daemon = undefined
  await Promise.all([model.close(), fake.close()])
  await rm(dataDir, { recursive: true, force: true })
})

const toml = (values: SectionValues): string =>
  Object.entries(values)
    .map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`)
    .join('')

/** Writes the configuration and starts the daemon. */
async function start(provider: ProviderName, change: SectionValues = {}): Promise<void> {
  const section = provider === 'telnyx' ? sectionOf(fake) : formSectionOf(provider, fake)
  const calls = { ...section, audio: 'stream', allowed_numbers: [CALLER], greeting: GREETING, silence_secs: 60, ...change }
  const config = [
    `[gateway]\nrequire_pairing = false\n[provider]\nkind = "openai"\nbase_url = "${model.url}/v1"\nmodel = "small"`,
    `[transcription]\nenabled = true\ncommand = ["${folder}/recognise", "{file}"]`,
    '[speech]\nenabled = true\ncommand = ["flite", "-voice", "rms", "-f", "{text}", "-o", "{file}"]',
    `[channels_config.voice_call]\n${toml(calls)}`,
  ]
  await writeFile(join(dataDir, 'config.toml'), config.join('\n'), { mode: 0o600 })
  daemon = await startSourceDaemon(dataDir)
}

const until = async (isSo: () => unknown, what: string): Promise<void> => {
  for (const endMs = performance.now() + WAIT_MS; !(await isSo()); await sleep(50))
    if (performance.now() > endMs) throw new Error(`It did not happen within ${WAIT_MS / 1000} s: ${what}`)
}

/** The words in what a person heard. */
async function wordsIn(mulaw: Uint8Array): Promise<string> {
  const file = join(folder, `heard-${crypto.randomUUID()}.wav`)
  await writeFile(file, toWav(fromMulaw(mulaw), RATE))
  const { stdout } = await run(join(folder, 'recognise'), [file], { cwd: folder })
  await rm(file)
  return stdout.trim().replace(/\s+/g, ' ')
}

/** The requests of a provider about one call, signed apart from the channel's code where the provider has a signing library. */
function exchange(provider: ProviderName, call: string, caller = CALLER) {
  const signed = {
    twilio: (path: string, form: Readonly<Record<string, string>>) => ({
      'x-twilio-signature': getExpectedTwilioSignature(AUTH_TOKEN, BASE_URL + path, form),
    }),
    plivo: (path: string, form: Readonly<Record<string, string>>) => {
      const fields = Object.entries(form)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, value]) => name + value)
        .join('')
      const url = `${BASE_URL}${path}${path.includes('?') ? '.' : '?'}${fields}.42`
      return {
        'x-plivo-signature-v3': createHmac('sha256', AUTH_TOKEN).update(url).digest('base64'),
        'x-plivo-signature-v3-nonce': '42',
      }
    },
  }
  const post = async (path: string, headers: Readonly<Record<string, string>>, body: string): Promise<string> => {
    const response = await fetch(`${daemon?.url}${path}`, { method: 'POST', headers, body })
    if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`)
    return response.text()
  }
  const form = async (status: string, query = '', isOurs = false): Promise<string> => {
    const [From, To] = isOurs ? [OUR_NUMBER, caller] : [caller, OUR_NUMBER]
    const id = provider === 'twilio' ? { CallSid: call } : { CallUUID: call }
    const values = { ...id, From, To, Direction: isOurs ? 'outbound-api' : 'inbound', CallStatus: status }
    const path = `/voice/inbound${query}`
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      ...signed[provider === 'plivo' ? 'plivo' : 'twilio'](path, values),
    }
    return post(path, headers, new URLSearchParams(values).toString())
  }
  const event = (type: string, isOurs = false, state?: unknown): Promise<string> => {
    const [from, to] = isOurs ? [OUR_NUMBER, caller] : [caller, OUR_NUMBER]
    const client_state = state ?? telnyxState({ remote: caller, local: OUR_NUMBER, direction: isOurs ? 'outbound' : 'inbound' })
    const payload = { call_control_id: call, from, to, direction: isOurs ? 'outgoing' : 'incoming', client_state }
    const body = JSON.stringify({ data: { id: crypto.randomUUID(), event_type: type, payload } })
    return post('/voice/inbound', telnyxHeaders(body, Date.now()), body)
  }
  const commands = (action: string) => fake.commands.filter((command) => command.action === action && command.call === call)
  const streamIn = (answer: string): string =>
    provider === 'telnyx' ? String(commands('streaming_start').at(-1)?.values.stream_url ?? '') : (/wss:[^"<]+/.exec(answer)?.[0] ?? '')
  const used = new Set<string>()
  const connect = (answer: string): Promise<Phone> => {
    const url = streamIn(answer)
    used.add(url)
    expect(url).toMatch(/^wss:\/\/gw\.example\.com\/ws\/voice\/[\w-]{40,}$/)
    return Phone.connect(provider, call, url.replace('wss://gw.example.com', `${daemon?.url.replace('http', 'ws')}`))
  }
  return {
    connect,
    streamIn,
    /** The call rings and is answered. Returns the answer of the channel. */
    async ring(): Promise<string> {
      if (provider !== 'telnyx') return form(provider === 'twilio' ? 'ringing' : 'in-progress')
      await event('call.initiated')
      return commands('answer').length > 0 ? event('call.answered') : ''
    },
    /** The media stream broke, and the provider connects it again. */
    async again(): Promise<Phone> {
      if (provider !== 'telnyx') return connect(await form('in-progress', '?again=1'))
      await until(() => !used.has(streamIn('')), 'the channel asks for the stream again')
      return connect('')
    },
    ended: () => (provider === 'telnyx' ? event('call.hangup') : form('completed')),
    rejected: (answer: string): boolean =>
      provider === 'telnyx' ? commands('reject').length > 0 : /<(Reject|Hangup) reason="rejected"\/>/.test(answer),
    wasHungUp: (): boolean => commands('hangup').length > 0,
  }
}

/** Waits until something was played to its end, and returns its words. */
async function listen(phone: Phone, what: string): Promise<string> {
  await until(() => phone.isPlaying, `${what} is played`)
  await until(() => !phone.isPlaying, `${what} ends`)
  return wordsIn(phone.takeHeard())
}
const lastTexts = (): readonly string[] => model.requests.map(({ lastUserText }) => lastUserText)
const said = (text: string): Uint8Array => speech.get(text) ?? new Uint8Array()
async function api(path: string, body?: object): Promise<unknown> {
  const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(`${daemon?.url}${path}`, body ? post : {})
  const text = await response.text()
  expect(response.ok, `${path}: ${response.status} ${text}`).toBe(true)
  return JSON.parse(text)
}

describe.skipIf(missing.length > 0).each(['twilio', 'telnyx', 'plivo'] as const)(`a call through %s${why}`, (provider) => {
  test('is greeted, understood and answered; the caller interrupts, and the call outlives a kill', async () => {
    await start(provider)
    const call = exchange(provider, 'v3:one')
    const answer = await call.ring()
    const phone = await call.connect(answer)
    await expect(call.connect(answer)).rejects.toThrow('refused')
    expect(await listen(phone, 'the greeting')).toContain(GREETING)

    model.script({ text: ANSWER })
    await phone.say(said(QUESTION))
    expect(await listen(phone, 'the reply')).toContain(ANSWER)
    expect(lastTexts().at(-1)).toContain(QUESTION)

    // The caller interrupts a reply of half a minute.
    model.script({ text: LONG_REPLY }, { text: ANSWER })
    await phone.say(said(QUESTION))
    await until(() => phone.isPlaying, 'the long reply is played')
    await sleep(2000)
    const interruptedAtMs = performance.now()
    const saying = phone.say(said(INTERRUPTION))
    await until(() => phone.clears > 0, 'the reply is cleared')
    expect(performance.now() - interruptedAtMs).toBeLessThan(5000)
    expect(phone.isPlaying).toBe(false)
    await saying
    expect(loudness(fromMulaw(phone.takeHeard()))).toBeGreaterThan(0.02)
    expect(await listen(phone, 'the next reply')).toContain(ANSWER)
    expect(lastTexts().at(-1)).toContain(INTERRUPTION)

    // The daemon is killed while it speaks, and the call goes on.
    model.script({ text: LONG_REPLY })
    await phone.say(said(QUESTION))
    await until(() => phone.isPlaying, 'a reply is played')
    await daemon?.kill()
    await phone.closed
    daemon = await startSourceDaemon(dataDir)
    const again = await call.again()
    await sleep(3000)
    model.script({ text: ANSWER })
    again.takeHeard()
    await again.say(said(INTERRUPTION))
    expect(await listen(again, 'the reply after the restart')).toContain(ANSWER)
    expect(lastTexts().at(-1)).toContain(INTERRUPTION)

    again.hangUp()
    await call.ended()
    await again.closed
    const stranger = exchange(provider, 'v3:two', STRANGER)
    expect(stranger.rejected(await stranger.ring())).toBe(true)
    expect(stranger.streamIn('')).toBe('')
  })

  test('of ours is not placed while its approval is open, and an API client cannot approve it', async () => {
    await start(provider)
    const asking = exchange(provider, 'v3:zero')
    const asker = await asking.connect(await asking.ring())
    await listen(asker, 'the greeting')
    model.script({ toolCalls: [{ name: 'voice_call', input: { to: CALLER, message: ANSWER } }] }, { text: 'Done.' })
    await asker.say(said(QUESTION))
    const pending = async () => (await api('/api/approvals?state=pending')) as { approvals: { run_id: string; step_id: string }[] }
    await until(async () => (await pending()).approvals.length > 0, 'the approval is asked for')
    const dials = () => fake.commands.filter(({ action }) => action === 'dial')
    expect(dials()).toEqual([])
    const [approval] = (await pending()).approvals
    const path = ['/api/approvals', approval?.run_id, approval?.step_id].join('/')
    await expect(api(path, { approved: true })).rejects.toThrow(/403 .*sluice approvals/)
    expect(dials()).toEqual([])
  })

  test('ends at its limit', async () => {
    await start(provider, { max_call_duration_secs: 10 })
    const call = exchange(provider, 'v3:four')
    const phone = await call.connect(await call.ring())
    await until(() => call.wasHungUp(), 'the call is ended at its limit')
    await phone.closed
  })
})
