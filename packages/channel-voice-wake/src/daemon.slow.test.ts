/** A sentence that is spoken into a virtual microphone becomes a turn of a real daemon, also of one that was killed and started again. */
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasProgram } from '@sluice/kit'
import { startModelServer } from '@sluice/testkit/model-server'
import { expect, test } from 'vitest'
import { startSourceDaemon } from '../../../qa/src/daemons/source-daemon.ts'
import { startSoundCard } from './testing/sound-card.ts'

const PROGRAMS = ['pulseaudio', 'pactl', 'paplay', 'arecord', 'flite', 'sox', 'pocketsphinx_continuous']
const missing = PROGRAMS.filter((name) => !hasProgram(name))
const PACKAGES = 'pulseaudio pulseaudio-utils libasound2-plugins alsa-utils flite sox pocketsphinx pocketsphinx-en-us'
const why = missing.length > 0 ? `; skipped, because ${missing.join(', ')} is missing: apt-get install ${PACKAGES}` : ''

/** The daemon with every channel of the catalogue: this one is in no profile. */
const PROGRAM = resolve(import.meta.dirname, '../../../qa/src/daemons/every-channel.ts')
const WAIT_MS = 90_000
const RECOGNISER = `#!/bin/sh
model=/usr/share/pocketsphinx/model/en-us
exec pocketsphinx_continuous -infile "$1" -hmm "$model/en-us" -lm "$model/en-us.lm.bin" -dict "$model/cmudict-en-us.dict" -logfn /dev/null
`

test.skipIf(missing.length > 0)(`the words after the wake word run a turn, and nothing else does${why}`, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-spoken-'))
  const dataDir = join(folder, 'data')
  const recognise = join(folder, 'recognise')
  await mkdir(dataDir, { mode: 0o700 })
  await writeFile(recognise, RECOGNISER)
  await chmod(recognise, 0o755)
  await chmod(folder, 0o755)
  const model = await startModelServer({ apiKey: null, answer: () => ({ text: 'It is on.' }) })
  const card = await startSoundCard(['desk'])
  await writeFile(
    join(dataDir, 'config.toml'),
    [
      `[gateway]\nrequire_pairing = false\n[provider]\nkind = "openai"\nbase_url = "${model.url}/v1"\nmodel = "small"`,
      `[transcription]\nenabled = true\ncommand = ["${recognise}", "{file}"]`,
      '[channels_config.voice_wake]\nwake_word = "hey computer"\nrecorder = "arecord"\ndevice = "desk"\nsilence_timeout_ms = 700',
    ].join('\n'),
    { mode: 0o600 },
  )
  const start = () => startSourceDaemon(dataDir, PROGRAM, card.env)
  let daemon = await start()
  const read = async (path: string) => (await fetch(`${daemon.url}${path}`)).json() as Promise<Record<string, never>>
  const until = async (isSo: () => unknown, what: string): Promise<void> => {
    for (const endMs = performance.now() + WAIT_MS; !(await isSo()); await sleep(100))
      if (performance.now() > endMs) throw new Error(`It did not happen within ${WAIT_MS / 1000} s: ${what}`)
  }
  const texts = () => model.requests.map(({ lastUserText }) => lastUserText)
  const hears = async (command: string, times: number) => {
    await card.say('desk', `hey computer, ${command}`)
    await until(() => texts().filter((text) => text.includes(command)).length === times, `"${command}" runs a turn`)
  }
  try {
    await sleep(3000)
    await card.say('desk', 'the weather is nice today')
    await hears('turn on the light', 1)
    expect(texts().join()).not.toContain('weather')
    await until(async () => (await read('/api/status')).replies_pending === 0, 'the reply counts as sent')
    await daemon.kill()
    daemon = await start()
    await sleep(3000)
    await hears('read the temperature sensor', 1)
    expect(texts().filter((text) => text.includes('turn on the light'))).toHaveLength(1)
  } finally {
    await daemon.kill()
    await Promise.all([card.close(), model.close()])
    await rm(folder, { recursive: true, force: true })
  }
})
