/** Builds the arguments of `docker run` and `podman run` for one command. */
import type { ProcessCommand, SandboxPolicy } from '@sluice/sdk'

const OPEN_FILES_MAX = 1024
/** The size of each private folder. */
const PRIVATE_MEBIBYTES = 512

export interface RunOptions {
  readonly name: string
  readonly image: string
  /** The options that select the user inside the container. */
  readonly user: readonly string[]
  /** The options that pass the environment. */
  readonly env: readonly string[]
}

/** Returns the arguments. The container sees its read-only image and the folders and devices of the policy, nothing else of this machine. */
export function runOptions(
  { file, args, cwd }: Pick<ProcessCommand, 'file' | 'args' | 'cwd'>,
  { writable, readable = [], network, devices = [], memoryBytesMax, processesMax, fileBytesMax, cpuSecsMax }: SandboxPolicy,
  { name, image, user, env }: RunOptions,
): string[] {
  const isShown = writable.some((folder) => cwd === folder || cwd.startsWith(`${folder}/`))
  const privateFolder = (path: string) => `--tmpfs=${path}:rw,nosuid,nodev,mode=1777,size=${PRIVATE_MEBIBYTES}m`
  return [
    'run',
    '--rm',
    '--interactive',
    '--init',
    '--pull=never',
    `--name=${name}`,
    '--hostname=sandbox',
    '--log-driver=none',
    '--read-only',
    privateFolder('/tmp'),
    privateFolder('/var/tmp'),
    '--cap-drop=ALL',
    '--security-opt=no-new-privileges',
    '--ipc=private',
    ...(network ? [] : ['--network=none']),
    ...user,
    `--ulimit=core=0:0`,
    `--ulimit=nofile=${OPEN_FILES_MAX}:${OPEN_FILES_MAX}`,
    ...(memoryBytesMax === undefined ? [] : [`--memory=${memoryBytesMax}`, `--memory-swap=${memoryBytesMax}`]),
    ...(processesMax === undefined ? [] : [`--pids-limit=${processesMax}`]),
    ...(fileBytesMax === undefined ? [] : [`--ulimit=fsize=${fileBytesMax}:${fileBytesMax}`]),
    ...(cpuSecsMax === undefined ? [] : [`--ulimit=cpu=${cpuSecsMax}:${cpuSecsMax}`]),
    ...writable.map((folder) => mount(folder)),
    ...readable.map((folder) => mount(folder, 'readonly')),
    ...devices.map((path) => `--device=${path}`),
    `--workdir=${isShown ? cwd : '/tmp'}`,
    ...env,
    // A shell starts the command, so that the engine cannot take a word of it for an option.
    '--entrypoint=/bin/sh',
    image,
    '-c',
    'exec "$@"',
    'sh',
    file,
    ...args,
  ]
}

const mount = (folder: string, ...options: readonly string[]): string =>
  `--mount=${['type=bind', `src=${folder}`, `dst=${folder}`, ...options].map(field).join(',')}`

/** Quotes a field of a line of comma-separated values. */
const field = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
