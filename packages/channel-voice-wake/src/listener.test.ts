/** Commands from a microphone that plays tones, with a transcription that recognises them. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError, type Inbound } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { voiceWakeSection } from './config.ts'
import feature from './index.ts'
import { chooseRecorder } from './recorder.ts'
import { type MicrophoneFake, silence, startMicrophoneFake } from './testing/index.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-voice-'))
  writeFileSync(join(folder, 'arecord'), '')
  chmodSync(join(folder, 'arecord'), 0o700)
  vi.stubEnv('PATH', `${folder}:${process.env.PATH}`)
})
afterAll(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

let fake: MicrophoneFake
let host: TestHost
let listening: Listening
let received: Inbound[]
beforeEach(() => {
  fake = startMicrophoneFake()
  host = testHost(fake.host)
  received = []
})
afterEach(async () => {
  await listening.stop()
  await fake.close()
})
async function start(section: object = {}): Promise<void> {
  const config = v.parse(voiceWakeSection.schema, { wake_word: 'hey sluice', ...section })
  const [channel] = feature.build(host, config).channels ?? []
  if (!channel) throw new Error('The section builds no channel.')
  listening = startListening(channel, host, async (inbound) => void received.push(inbound))
  await expect.poll(() => listening.health.state).toBe('ok')
}
const texts = () => received.map(({ text }) => text)
const logged = (part: string) => host.logs.some(({ message }) => message.includes(part))

describe('a command', () => {
  test('follows the wake word in one breath', async () => {
    await start()
    fake.say('Hey, Sluice! Turn on the light.')
    await expect.poll(texts).toEqual(['Turn on the light.'])
    expect(received[0]).toMatchObject({ sender: 'voice_user', account: 'microphone', to: { to: 'voice_user' } })
  })

  test('may follow the wake word after a pause, once', async () => {
    await start()
    fake.say('hey sluice')
    fake.say('turn on the light')
    fake.say('and the radio')
    await expect.poll(() => fake.recordings.length).toBe(3)
    await expect.poll(texts).toEqual(['turn on the light'])
  })

  test('must begin within eight seconds after the wake word', async () => {
    await start()
    fake.say('hey sluice')
    fake.play(silence(8000))
    fake.say('turn on the light')
    await expect.poll(() => fake.recordings.length).toBe(2)
    fake.say('hey sluice stop')
    await expect.poll(texts).toEqual(['stop'])
  })

  test('has an id that no other has, also after a restart', async () => {
    await start()
    for (const text of ['one', 'two']) fake.say(`hey sluice ${text}`)
    await expect.poll(() => received.length).toBe(2)
    await listening.stop()
    await start()
    fake.say('hey sluice three')
    await expect.poll(() => received.length).toBe(3)
    expect(new Set(received.map(({ id }) => id)).size).toBe(3)
  })

  test('without the wake word is neither delivered nor logged', async () => {
    await start()
    fake.say('my secret is 1234')
    fake.say('hey sluice hello')
    await expect.poll(texts).toEqual(['hello'])
    expect(JSON.stringify(host.logs)).not.toContain('1234')
  })

  test('is kept until it can be stored', async () => {
    const config = v.parse(voiceWakeSection.schema, { wake_word: 'hey sluice' })
    const [channel] = feature.build(host, config).channels ?? []
    let isFull = true
    if (!channel) throw new Error('The section builds no channel.')
    listening = startListening(channel, host, async (inbound) => {
      if (isFull) throw new AppError('unavailable', 'the disk is full')
      received.push(inbound)
    })
    await expect.poll(() => listening.health.state).toBe('ok')
    fake.say('hey sluice hello')
    await expect.poll(() => logged('message not stored')).toBe(true)
    isFull = false
    await host.advance(2000)
    await expect.poll(texts).toEqual(['hello'])
  })
})

describe('the window', () => {
  /** Seconds of sound in each transcribed recording. */
  const seconds = () => fake.recordings.map(({ length }) => (length - 44) / 2 / 16_000)

  test('is all that is transcribed of an utterance without the wake word', async () => {
    await start()
    fake.say('my secret is 1234', { speechMs: 12_000 })
    fake.say('hey sluice hello')
    await expect.poll(texts).toEqual(['hello'])
    expect(seconds()).toEqual([2.5, 2.5])
  })

  test('is followed by the whole utterance after the wake word', async () => {
    await start()
    fake.say('hey sluice turn on the light', { speechMs: 6000 })
    await expect.poll(texts).toEqual(['turn on the light'])
    expect(seconds()[0]).toBe(2.5)
    expect(seconds()[1]).toBeGreaterThan(6)
    expect(seconds()).toHaveLength(2)
  })

  test('is not taken for the command when the whole utterance is not transcribed', async () => {
    await start()
    fake.failures.push(undefined, new AppError('unavailable', 'the service cannot be reached'))
    fake.say('hey sluice delete all mails of the folder spam', { speechMs: 6000 })
    await expect.poll(() => listening.health.detail).toContain('the service cannot be reached')
    fake.say('hey sluice hello')
    await expect.poll(texts).toEqual(['hello'])
  })

  test('is not taken for the command when the whole utterance is written without the wake word', async () => {
    const { transcribe } = fake.host.services ?? {}
    host = testHost({
      ...fake.host,
      services: {
        transcribe: async (recording, options) => {
          const text = await transcribe?.(recording, options)
          return recording.bytes.length > 44 + 2.5 * 16_000 * 2 ? 'hey juice delete all mails of the folder spam' : (text ?? '')
        },
      },
    })
    await start()
    fake.say('hey sluice delete all mails', { speechMs: 6000 })
    await expect.poll(() => logged('lacks the wake word')).toBe(true)
    fake.say('hey sluice hello')
    await expect.poll(texts).toEqual(['hello'])
  })

  test('is transcribed only if the whole utterance may be transcribed in the same minute', async () => {
    await start({ max_transcriptions_per_minute: 2 })
    fake.say('hey sluice one')
    await expect.poll(texts).toEqual(['one'])
    fake.say('hey sluice delete all mails of the folder spam', { speechMs: 6000 })
    await expect.poll(() => logged('max_transcriptions_per_minute')).toBe(true)
    fake.say('hey sluice two')
    await expect.poll(texts).toEqual(['one', 'two'])
    expect(seconds()).toHaveLength(2)
  })

  test('is not opened again where max_capture_secs cuts an utterance', async () => {
    await start({ max_capture_secs: 3 })
    fake.say('my secret is 1234', { speechMs: 30_000 })
    fake.say('hey sluice hello')
    await expect.poll(texts).toEqual(['hello'])
    expect(seconds()).toEqual([2.5, 2.5])
  })

  test('is not needed for the command that follows the wake word after a pause', async () => {
    await start()
    fake.say('hey sluice')
    fake.say('turn on the light', { speechMs: 6000 })
    await expect.poll(texts).toEqual(['turn on the light'])
    expect(seconds()).toHaveLength(2)
    expect(seconds()[1]).toBeGreaterThan(6)
  })
})

describe('the transcription', () => {
  test('is called at most so often in a minute', async () => {
    await start({ max_transcriptions_per_minute: 3 })
    for (const number of [1, 2, 3, 4, 5]) {
      fake.say(`hey sluice ${number}`)
      await expect.poll(() => fake.recordings.length).toBe(Math.min(number, 3))
    }
    await expect.poll(() => logged('max_transcriptions_per_minute')).toBe(true)
    expect(texts()).toEqual(['1', '2', '3'])
    // The recorder is not silent meanwhile.
    for (let second = 0; second < 61; second += 5) {
      await host.advance(5000)
      fake.play(silence(100))
    }
    fake.say('hey sluice 6')
    await expect.poll(texts).toEqual(['1', '2', '3', '6'])
  })

  test('that fails is shown in the health until one succeeds', async () => {
    await start()
    fake.failures.push(new AppError('unavailable', 'the service cannot be reached'))
    fake.say('hey sluice one')
    await expect.poll(() => listening.health.detail).toContain('the service cannot be reached')
    fake.say('hey sluice two')
    await expect.poll(texts).toEqual(['two'])
    expect(listening.health.state).toBe('ok')
  })

  test('that refuses a recording does not change the health', async () => {
    await start()
    fake.failures.push(new AppError('invalid_request', 'no words'))
    fake.say('hey sluice one')
    fake.say('hey sluice two')
    await expect.poll(texts).toEqual(['two'])
    expect(listening.health.detail).toBeUndefined()
  })

  test('that is not enabled is named in the health', async () => {
    fake.setTranscription(false)
    const [channel] = feature.build(host, v.parse(voiceWakeSection.schema, { wake_word: 'hey sluice' })).channels ?? []
    if (!channel) throw new Error('The section builds no channel.')
    listening = startListening(channel, host, async () => undefined)
    await expect.poll(() => listening.health.detail).toContain('[transcription] is not enabled')
    expect(fake.started).toBe(0)
  })

  test('falls behind by at most four utterances', async () => {
    const { promise, resolve } = Promise.withResolvers<string>()
    host = testHost({ ...fake.host, services: { transcribe: () => promise } })
    await start({ wake_word: 'hey' })
    for (let count = 0; count < 6; count += 1) fake.say('hey')
    await expect.poll(() => host.logs.filter(({ message }) => message === 'utterance dropped').length).toBe(2)
    resolve('hey you')
    await expect.poll(() => received.length).toBe(4)
  })
})

describe('the recorder', () => {
  test('runs in the sandbox without network, with the sound devices', async () => {
    vi.stubEnv('SLUICE_CANARY', 'secret')
    await start({ device: 'plughw:1,0' })
    const [{ file, args, env, policy } = { env: {} }] = fake.spawned
    expect(file).toBe(join(folder, 'arecord'))
    expect(args).toEqual(['-q', '-t', 'raw', '-f', 'S16_LE', '-r', '16000', '-c', '1', '-D', 'plughw:1,0'])
    expect(policy).toEqual({ writable: [], network: false, devices: ['/dev/snd'] })
    expect(JSON.stringify(env)).not.toContain('secret')
  })

  test('is started again when it ends, and its last words are shown', async () => {
    await start()
    fake.cut({ isDown: true })
    await expect.poll(() => listening.retryAtMs).toBeDefined()
    await host.advance(20_000)
    await expect.poll(() => listening.health.detail).toMatch(/arecord ended: arecord: main: audio open error/)
    fake.cut()
    const later = async () => {
      await host.advance(1000)
      return listening.health.state
    }
    await expect.poll(later).toBe('ok')
    fake.say('hey sluice hello')
    await expect.poll(texts).toEqual(['hello'])
  })

  test('is started again when it sends nothing for ten seconds', async () => {
    await start()
    fake.mute()
    await host.advance(16_000)
    await expect.poll(() => fake.started).toBe(2)
    fake.say('hey sluice hello')
    await expect.poll(texts).toEqual(['hello'])
  })
})

describe('chooseRecorder', () => {
  const only =
    (...names: string[]) =>
    async (name: string) =>
      names.includes(name) ? `/usr/bin/${name}` : undefined

  test('takes the first that is installed', async () => {
    expect((await chooseRecorder({ recorder: 'auto' }, only('sox', 'parec'))).file).toBe('/usr/bin/parec')
    expect((await chooseRecorder({ recorder: 'auto' }, only('sox'))).args).toContain('signed-integer')
    expect((await chooseRecorder({ recorder: 'pw-record', device: 'mic' }, only('pw-record', 'arecord'))).args).toContain('--target=mic')
  })

  test('names the device for each', async () => {
    expect((await chooseRecorder({ recorder: 'parec', device: 'mic' }, only('parec'))).args).toContain('--device=mic')
    expect((await chooseRecorder({ recorder: 'sox', device: 'mic' }, only('sox'))).env.AUDIODEV).toBe('mic')
  })

  test('refuses without one', async () => {
    await expect(chooseRecorder({ recorder: 'auto' }, only())).rejects.toMatchObject({ code: 'forbidden' })
    await expect(chooseRecorder({ recorder: 'sox' }, only('arecord'))).rejects.toThrow('No recorder is installed (sox)')
  })
})
