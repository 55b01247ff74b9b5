/** Sound without a sound card, for the slow tests: PulseAudio with sinks whose monitors are microphones, and flite as the speaker. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const START_MS = 10_000
const RATE = ['-r', '16000', '-c', '1', '-b', '16']

export interface SoundCard {
  /** The variables for programs that record and play. */
  readonly env: Readonly<Record<string, string>>
  /** Speaks a text into a microphone. Resolves when it was spoken; `stretch` is above 1 for slow speech. */
  say(microphone: string, text: string, stretch?: number): Promise<void>
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
  let spoken = 0
  return {
    env,
    async say(microphone, text, stretch = 1) {
      const file = join(folder, `${++spoken}.wav`)
      await run('flite', ['-voice', 'rms', '--setf', `duration_stretch=${stretch}`, '-t', text, '-o', `${file}.flite`])
      await run('sox', ['-t', 'wav', `${file}.flite`, ...RATE, file, 'pad', '0.3', '0.2'])
      await run('paplay', [`--device=${microphone}`, file], { env: all })
      await Promise.all([file, `${file}.flite`].map((path) => rm(path)))
    },
    close,
  }
}
