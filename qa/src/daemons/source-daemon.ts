/** Runs the daemon from source as a process of its own, for tests that kill it. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { environment, ROOT } from './bundle.ts'

export interface SourceDaemon {
  readonly url: string
  /** Kills the process. Resolves once it has ended. */
  kill(): Promise<void>
}

const PROFILE = join(ROOT, 'profiles', 'full.ts')
const START_MS_MAX = 60_000

/** Resolves once the daemon accepts connections. `program` is the file that starts it, `env` are more variables of its environment. */
export async function startSourceDaemon(
  dataDir: string,
  program = PROFILE,
  env: Readonly<Record<string, string>> = {},
): Promise<SourceDaemon> {
  const child = spawn(process.execPath, [program, 'daemon', '--data-dir', dataDir, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment({ NODE_COMPILE_CACHE: join(ROOT, 'node_modules', '.cache', 'sluice', 'sources'), ...env }),
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  let output = ''
  const up = new Promise<string>((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-20_000)
        const [, url] = /listening on (http:\/\/\S+)\s/.exec(output) ?? []
        if (url) resolve(url)
      })
  })
  const timeout = AbortSignal.timeout(START_MS_MAX)
  const late = new Promise<undefined>((resolve) => timeout.addEventListener('abort', () => resolve(undefined), { once: true }))
  const url = await Promise.race([up, exited.then(() => undefined), late])
  if (url !== undefined) return { url, kill }
  await kill()
  throw new Error(`The daemon did not start: ${output}`)
}
