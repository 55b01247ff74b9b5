/** The programs that record from a microphone: raw samples of 16 bits, one channel, 16,000 in a second, on standard output. */
import { findProgram } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import type { VoiceWakeConfig } from './config.ts'
import { SAMPLE_RATE } from './samples.ts'

export type RecorderName = Exclude<VoiceWakeConfig['recorder'], 'auto'>

export interface Recorder {
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

const RATE = String(SAMPLE_RATE)
/** In the order in which `auto` looks for them. */
const NAMES: readonly RecorderName[] = ['arecord', 'parec', 'pw-record', 'sox']

const ARGS: Readonly<Record<RecorderName, (device: string | undefined) => readonly string[]>> = {
  arecord: (device) => ['-q', '-t', 'raw', '-f', 'S16_LE', '-r', RATE, '-c', '1', ...(device === undefined ? [] : ['-D', device])],
  parec: (device) => [
    '--raw',
    '--format=s16le',
    `--rate=${RATE}`,
    '--channels=1',
    '--latency-msec=50',
    ...(device === undefined ? [] : [`--device=${device}`]),
  ],
  'pw-record': (device) => [
    '--raw',
    `--rate=${RATE}`,
    '--channels=1',
    '--format=s16',
    ...(device === undefined ? [] : [`--target=${device}`]),
    '-',
  ],
  sox: () => ['-q', '-d', '-t', 'raw', '-r', RATE, '-e', 'signed-integer', '-b', '16', '-c', '1', '-'],
}

/** The variables that the sound systems read: where their sockets and settings are. Secrets of the daemon are not among them. */
const VARIABLES = [
  'HOME',
  'XDG_RUNTIME_DIR',
  'XDG_CONFIG_HOME',
  'ALSA_CONFIG_PATH',
  'ALSA_CARD',
  'PULSE_SERVER',
  'PULSE_SOURCE',
  'PULSE_COOKIE',
  'PULSE_RUNTIME_PATH',
  'PIPEWIRE_RUNTIME_DIR',
  'PIPEWIRE_REMOTE',
  'AUDIODRIVER',
]
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'

/** Returns the configured recorder, or the first one that is installed. Throws `forbidden` without one: the operator must install it. */
export async function chooseRecorder(
  { recorder, device }: Pick<VoiceWakeConfig, 'recorder' | 'device'>,
  find: (name: string) => Promise<string | undefined> = findProgram,
): Promise<Recorder> {
  const wanted = recorder === 'auto' ? NAMES : [recorder]
  for (const name of wanted) {
    const file = await find(name)
    if (file === undefined) continue
    const more = name === 'sox' && device !== undefined ? { AUDIODEV: device } : {}
    return { file, args: ARGS[name](device), env: { ...environment(), ...more } }
  }
  throw new AppError('forbidden', `No recorder is installed (${wanted.join(', ')}): install the package alsa-utils, or set \`recorder\``)
}

function environment(): Record<string, string> {
  const given = VARIABLES.flatMap((name) => {
    const value = process.env[name]
    return value === undefined || value === '' ? [] : [[name, value] as const]
  })
  return { PATH: process.env.PATH || PATH_DEFAULT, LANG: 'C.UTF-8', ...Object.fromEntries(given) }
}
