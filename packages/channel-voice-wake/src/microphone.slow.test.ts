/** Speech on virtual microphones, heard by real recorders and understood by a real recogniser. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasProgram, systemClock } from '@sluice/kit'
import type { Transcribe } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createSpawn } from '../../runtime/src/process/spawn.ts'
import { noSandbox } from '../../runtime/src/sandbox/no-sandbox.ts'
import { createWorkspace } from '../../runtime/src/workspace/workspace.ts'
import { transcriptionSection } from '../../transcription/src/config.ts'
import transcription from '../../transcription/src/index.ts'
import { voiceWakeSection } from './config.ts'
import feature from './index.ts'
import { type SoundCard, startSoundCard } from './testing/sound-card.ts'

const PROGRAMS = ['pulseaudio', 'pactl', 'paplay', 'parec', 'arecord', 'flite', 'sox', 'pocketsphinx_continuous']
const missing = PROGRAMS.filter((name) => !hasProgram(name))
const PACKAGES = 'pulseaudio pulseaudio-utils libasound2-plugins alsa-utils flite sox pocketsphinx pocketsphinx-en-us'
const why = missing.length > 0 ? `; skipped, because ${missing.join(', ')} is missing: apt-get install ${PACKAGES}` : ''

const COMMANDS = [
  'turn on the light',
  'read the temperature sensor',
  'turn off the fan',
  'close the window',
  'open the window',
  'turn off the light',
  'what is the weather today',
  'turn on the fan',
  'set the temperature to twenty',
  'read the news',
  'call my mother',
  'start the music',
  'lock the front door',
  'where is my phone',
  'what is the date today',
  'turn the volume down',
  'turn the volume up',
  'show me the calendar',
  'make some coffee',
  'send a message to john',
  'how warm is the kitchen',
  'is the window open',
  'what time is it',
  'stop the music',
  'good night',
]
const TALK = [
  'the weather is nice today',
  'please close the window',
  'I bought a new computer yesterday',
  'the computer is on the table',
  'hey there how are you',
  'we are going to the market',
  'dinner is ready in ten minutes',
  'did you see my keys',
  'the train leaves at seven',
  'she is reading a long book',
  'hey what are you doing',
  'my computer is very slow',
  'turn on the light please',
  'it is raining outside',
  'the children are at school',
  'can you help me with this',
  'he lives near the river',
  'they played football all day',
  'the milk is in the fridge',
  'tomorrow is a holiday',
  'I would like some tea',
  'the car needs new tires',
  'this song is beautiful',
  'the garden looks green',
  'call me when you are home',
]
/** Each sentence is spoken at two speeds. */
const STRETCHES = [1, 1.15]
/** How long after the end of a sentence its transcription may begin, and how long it may take. */
const HEARD_MS = 20_000
/** Longer than the silence that ends an utterance. */
const SETTLED_MS = 1000

/** How much louder the speech is than the noise. */
const DECIBELS = 18
/** Most of the commands in noise are understood word for word. */
const EXACT_MIN = 45

const MODEL = `model=/usr/share/pocketsphinx/model/en-us`
const ACOUSTIC = '-hmm "$model/en-us" -dict "$model/cmudict-en-us.dict"'
/** The commands of `[transcription]`: they print the words of a recording. */
const RECOGNISERS = {
  /** Knows any words, but only where it is quiet. */
  words: `#!/bin/sh
${MODEL}
exec pocketsphinx_continuous -infile "$1" ${ACOUSTIC} -lm "$model/en-us.lm.bin" -logfn /dev/null
`,
  /**
   * Works in noise, and knows the wake word and commands only. It spots the wake word and phrases that sound alike: the one that scores
   * highest was said. Then it finds the command in a grammar.
   */
  commands: `#!/bin/sh
${MODEL}
given=$(dirname "$0")
basename "$1" .wav >names
decode() { pocketsphinx_batch -adcin yes -adchdr 44 -cepdir . -cepext .wav -ctl names ${ACOUSTIC} "$@"; }
best=$(decode -kws "$given/phrases" -backtrace yes 2>&1 |
  awk '$2 == "computer" && $5 ~ /^[0-9.]+$/ && $5 > best { best = $5; word = $1 } END { print word }')
[ "$best" = hey ] || exit 0
decode -jsgf "$given/commands.jsgf" -hyp said -logfn /dev/null
sed 's/ *([^()]*)$//' said
`,
}
const PHRASES = ['hey', 'the', 'my', 'new'].map((word) => `${word} computer /1e-60/\n`).join('')
const GRAMMAR = `#JSGF V1.0;
grammar commands;
public <said> = hey computer ( ${COMMANDS.join(' | ')} );
`

describe.skipIf(missing.length > 0)(`speech on a virtual microphone${why}`, () => {
  let card: SoundCard
  let folder: string
  beforeAll(async () => {
    card = await startSoundCard(['quiet', 'noisy'])
    folder = await mkdtemp(join(tmpdir(), 'sluice-voice-'))
    for (const [name, script] of Object.entries(RECOGNISERS)) {
      await writeFile(join(folder, name), script)
      await chmod(join(folder, name), 0o700)
    }
    await writeFile(join(folder, 'phrases'), PHRASES)
    await writeFile(join(folder, 'commands.jsgf'), GRAMMAR)
    for (const [name, value] of Object.entries(card.env)) vi.stubEnv(name, value)
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    await card?.close()
    await rm(folder, { recursive: true, force: true })
  })

  /** Starts the channel with real processes and the real `[transcription]`. */
  function listen(recogniser: keyof typeof RECOGNISERS, section: object) {
    const workspace = createWorkspace({ root: join(folder, 'workspace'), forbidden: [] })
    const base = testHost({ workspace })
    const limits = { memoryBytesMax: 2 ** 40, processesMax: 1000, fileBytesMax: 2 ** 30, cpuSecsMax: 3600 }
    const spawn = createSpawn({
      sandbox: () => noSandbox,
      required: false,
      limits,
      workspaces: [workspace.root],
      closed: [],
      log: base.log,
      clock: systemClock,
    })
    const config = v.parse(transcriptionSection.schema, { enabled: true, command: [join(folder, recogniser), '{file}'] })
    const { services } = transcription.build({ ...base, clock: systemClock, spawn, workspace }, config)
    let [begun, ended] = [0, 0]
    const transcribe: Transcribe = async (...args) => {
      begun += 1
      const text = await services?.transcribe?.(...args).finally(() => (ended += 1))
      return text ?? ''
    }
    const host = {
      ...base,
      clock: systemClock,
      spawn,
      workspace,
      service: ((name: string) => (name === 'transcribe' ? transcribe : undefined)) as never,
    }
    const [channel] = feature.build(host, v.parse(voiceWakeSection.schema, section)).channels ?? []
    if (!channel) throw new Error('The section builds no channel.')
    const heard: string[] = []
    const listening = startListening(channel, host, async ({ text }) => void heard.push(text))
    return {
      heard,
      listening,
      get begun() {
        return begun
      },
      get isIdle() {
        return begun === ended
      },
      logs: base.logs,
    }
  }

  test.concurrent.each([
    ['in quiet', 'quiet', 'words', { recorder: 'arecord', device: 'quiet' }],
    [`in pink noise ${DECIBELS} dB below the speech`, 'noisy', 'commands', { recorder: 'parec', device: 'noisy.monitor' }],
  ] as const)(
    '%s: of 50 sentences with the wake word at least 48 are heard, of 50 without at most one',
    { timeout: 1_800_000 },
    async (_where, microphone, recogniser, recorder) => {
      if (microphone === 'noisy') await card.addNoise(microphone, DECIBELS)
      const running = listen(recogniser, {
        ...recorder,
        wake_word: 'hey computer',
        silence_timeout_ms: 700,
        max_transcriptions_per_minute: 600,
      })
      await expect.poll(() => running.listening.health.state).toBe('ok')
      await sleep(2000)
      /** Speaks, and resolves to whether a message came. */
      const isHeard = async (text: string, stretch: number): Promise<boolean> => {
        const [messages, begun] = [running.heard.length, running.begun]
        await card.say(microphone, text, stretch)
        const endMs = performance.now() + HEARD_MS
        while (running.begun === begun && performance.now() < endMs) await sleep(50)
        // A sentence may be more than one utterance.
        for (let quietMs = 0; quietMs < SETTLED_MS && performance.now() < endMs; await sleep(50))
          quietMs = running.isIdle ? quietMs + 50 : 0
        return running.heard.length > messages
      }
      const wrong: string[] = []
      const count = { heard: 0, exact: 0, false: 0 }
      for (const stretch of STRETCHES)
        for (const [index, command] of COMMANDS.entries()) {
          if (await isHeard(`hey computer, ${command}`, stretch)) {
            count.heard += 1
            count.exact += running.heard.at(-1) === command ? 1 : 0
          } else wrong.push(`not heard: ${command} (${stretch})`)
          const talk = TALK[index] ?? ''
          if (!(await isHeard(talk, stretch))) continue
          count.false += 1
          wrong.push(`heard: ${talk} (${stretch}): ${running.heard.at(-1)}`)
        }
      await running.listening.stop()
      expect(count.heard, wrong.join('; ')).toBeGreaterThanOrEqual(48)
      expect(count.false, wrong.join('; ')).toBeLessThanOrEqual(1)
      console.log(`${microphone}: ${JSON.stringify(count)} ${wrong.join('; ')}`)
      if (recogniser === 'commands') expect(count.exact).toBeGreaterThanOrEqual(EXACT_MIN)
      // The first words of commands are complete: the pre-roll and the rest of the same breath are used.
      expect(running.heard).toEqual(expect.arrayContaining(['turn on the light', 'read the temperature sensor']))
    },
  )
})
