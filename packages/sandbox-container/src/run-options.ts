/** What `docker run` and `podman run` are told for one command. */
import type { ProcessCommand, SandboxPolicy } from '@sluice/sdk'

const OPEN_FILES_MAX = 1024
/** Of each private folder. */
const PRIVATE_MEBIBYTES = 512

export interface RunOptions {
  readonly name: string
  readonly image: string
  /** What makes the user inside the one outside. */
  readonly user: readonly string[]
  /** Options that give the environment. */
  readonly env: readonly string[]
}

/** The container has the image, read-only, the folders of the policy, and nothing else of this machine. */
export function runOptions(
  { file, args, cwd }: Pick<ProcessCommand, 'file' | 'args' | 'cwd'>,
  { writable, network, devices = [], memoryBytesMax, processesMax, fileBytesMax, cpuSecsMax }: SandboxPolicy,
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
    ...writable.map((folder) => `--mount=${['type=bind', `src=${folder}`, `dst=${folder}`].map(field).join(',')}`),
    ...devices.map((path) => `--device=${path}`),
    `--workdir=${isShown ? cwd : '/tmp'}`,
    ...env,
    // by a shell, so that no word of the command can be taken for one of the engine's
    '--entrypoint=/bin/sh',
    image,
    '-c',
    'exec "$@"',
    'sh',
    file,
    ...args,
  ]
}

/** Of a line of comma-separated values. */
const field = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
