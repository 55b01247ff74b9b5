/** Runs compose.yaml with Debian's docker-compose, in the network of this machine, because the engine of a test has no other. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../daemons/bundle.ts'
import { cacheFolder, releaseName, unpackPackages } from '../debian-packages.ts'
import type { DockerEngine } from '../docker-engine.ts'
import { onceAndWhole } from '../once-and-whole.ts'

const run = promisify(execFile)
/** Debian's packages for Python need Debian's Python. */
const PYTHON = '/usr/bin/python3'
const PORTS = /^ {4}ports:\n {6}- .*\n/m

/** A program with the beginning of its arguments. */
export interface ComposeProgram {
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** Prepares docker-compose for the service of compose.yaml with more variables in its environment. Throws if it is not available. */
export async function composeProgram(
  engine: DockerEngine,
  folder: string,
  variables: Readonly<Record<string, string>>,
): Promise<ComposeProgram> {
  const root = cacheFolder('dev/debian', `docker-compose-${await releaseName()}`)
  await onceAndWhole(root, (draft) => unpackPackages(draft, ['docker-compose']))
  await mkdir(folder, { recursive: true })
  const file = join(folder, 'compose.yaml')
  const text = await readFile(join(ROOT, 'compose.yaml'), 'utf8')
  if (!PORTS.test(text)) throw new Error('compose.yaml has no ports')
  const environment = Object.entries(variables).map(([name, value]) => `      ${name}: ${JSON.stringify(value)}\n`)
  await writeFile(file, text.replace(PORTS, `    network_mode: host\n    environment:\n${environment.join('')}`))
  return {
    words: [PYTHON, join(root, 'usr/bin/docker-compose'), '--file', file],
    env: { ...engine.env, PYTHONPATH: join(root, 'usr/lib/python3/dist-packages'), HOME: folder },
  }
}

/** Runs docker-compose with these arguments; resolves to its standard output. */
export type Compose = (...args: string[]) => Promise<string>

export function compose({ words, env }: ComposeProgram): Compose {
  const [program = '', ...before] = words
  return async (...args) => (await run(program, [...before, ...args], { env })).stdout.trim()
}
