/** Sound without a sound card, for the slow tests: PulseAudio with sinks whose monitors are microphones, and flite as the speaker. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { loudness } from '@sluice/voice-common'
import { SampleReader } from '../samples.ts'

const run = promisify(execFile)
const START_MS = 20_000
const RATE = ['-r', '16000', '-c', '1', '-b', '16']
const RAW = ['-t', 'raw', '-e', 'signed-integer']
/** The noise is longer than any test. */
const NOISE_SECS = 3600
const NOISE_PEAK = 0.3

export interface SoundCard {
  /** The variables for programs that record and play. */
  readonly env: Readonly<Record<string, string>>
  /** Speaks a text into a microphone. Resolves when it was spoken; `stretch` is above 1 for slow speech. */
  say(microphone: string, text: string, stretch?: number): Promise<void>
  /**
   * Plays pink noise into a microphone until `close`. The speech is louder by `decibels`: the ratio of their root mean squares, that of
   * the speech over one sentence without the silence around it.
   */
  addNoise(microphone: string, decibels: number): Promise<void>
  close(): Promise<void>
}

/** `microphones` are names for `arecord -D`; `<name>.monitor` is the name for `parec --device`. */
export async function startSoundCard(microphones: readonly string[]): Promise<SoundCard> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-sound-'))
  const server = `unix:${folder}/pulse.sock`
  const env = { PULSE_SERVER: server, ALSA_CONFIG_PATH: join(folder, 'asound.conf') }
  const all = { ...process.env, ...env, HOME: folder, XDG_RUNTIME_DIR: folder }
  const sinks = microphones.map((name) => `load-module module-null-sink sink_name=${name} rate=16000 channels=1 format=s16le`)
  const modules = [`load-module module-native-protocol-unix auth-anonymous=1 socket=${folder}/pulse.sock`, ...sinks]
  await writeFile(join(folder, 'default.pa'), `${modules.join('\n')}\n`)
  const devices = microphones.map((name) => `pcm.${name} { type pulse device "${name}.monitor" }`)
  await writeFile(env.ALSA_CONFIG_PATH, `</usr/share/alsa/alsa.conf>\n${devices.join('\n')}\n`)
  const children: ChildProcess[] = []
  const start = (file: string, args: readonly string[]): ChildProcess => {
    const child = spawn(file, args, { env: all, stdio: 'ignore' })
    child.on('error', () => undefined)
    children.push(child)
    return child
  }
  const flags = ['--daemonize=no', '--use-pid-file=no', '--exit-idle-time=-1', '--realtime=no', '--high-priority=no']
  start('pulseaudio', ['-n', '-F', join(folder, 'default.pa'), ...flags])
  const close = async (): Promise<void> => {
    for (const child of children.toReversed()) child.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  const endMs = performance.now() + START_MS
  while (
    !(await run('pactl', ['info'], { env: all })
      .then(() => true)
      .catch(() => false))
  ) {
    if (performance.now() > endMs) {
      await close()
      throw new Error('PulseAudio did not start.')
    }
    await sleep(100)
  }
  const speak = (text: string, stretch: number, file: string) =>
    run('flite', ['-voice', 'rms', '--setf', `duration_stretch=${stretch}`, '-t', text, '-o', file])
  /** Converts a file and returns the loudness of its samples. */
  const loudnessOf = async (args: readonly string[]): Promise<number> => {
    const raw = join(folder, 'measured.raw')
    await run('sox', [...args.slice(0, -1), ...RATE, ...RAW, raw, ...(args.at(-1)?.split(' ') ?? [])])
    return loudness(new SampleReader().push(await readFile(raw)))
  }
  let spoken = 0
  return {
    env,
    async say(microphone, text, stretch = 1) {
      const file = join(folder, `${++spoken}.wav`)
      await speak(text, stretch, `${file}.flite`)
      await run('sox', ['-t', 'wav', `${file}.flite`, ...RATE, file, 'pad', '0.3', '0.2'])
      await run('paplay', [`--device=${microphone}`, file], { env: all })
      await Promise.all([file, `${file}.flite`].map((path) => rm(path)))
    },
    async addNoise(microphone, decibels) {
      const sentence = join(folder, 'sentence.flite')
      await speak('hey computer, turn on the light', 1, sentence)
      const speech = await loudnessOf(['-t', 'wav', sentence, 'silence 1 0.02 1% reverse silence 1 0.02 1% reverse'])
      const noise = await loudnessOf(['-n', `synth 60 pinknoise vol ${NOISE_PEAK}`])
      const volume = (NOISE_PEAK * speech) / noise / 10 ** (decibels / 20)
      const file = join(folder, `${microphone}-noise.wav`)
      await run('sox', ['-n', ...RATE, file, 'synth', String(NOISE_SECS), 'pinknoise', 'vol', String(volume)])
      start('paplay', [`--device=${microphone}`, file])
    },
    close,
  }
}
