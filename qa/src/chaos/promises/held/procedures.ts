/** Two procedures whose runs wait for others; one asks a person. Both count their effects. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The paths that start a run of `narrow` and of `asking`. */
export const HELD_PATHS = ['/narrow', '/asking'] as const

export function writeHeldProcedures(dataDir: string, effectsUrl: string): void {
  write(dataDir, effectsUrl, { name: 'narrow', concurrentMax: 2, asks: false })
  write(dataDir, effectsUrl, { name: 'asking', concurrentMax: 3, asks: true })
}

interface Procedure {
  readonly name: string
  readonly concurrentMax: number
  readonly asks: boolean
}

function write(dataDir: string, effectsUrl: string, { name, concurrentMax, asks }: Procedure): void {
  const folder = join(dataDir, 'sops', name)
  mkdirSync(folder, { recursive: true })
  const head = `[sop]\nname = "${name}"\ndescription = "For crash runs"\nexecution_mode = "deterministic"\nmax_concurrent = ${concurrentMax}\n`
  writeFileSync(join(folder, 'SOP.toml'), `${head}\n[[triggers]]\ntype = "webhook"\npath = "/${name}"\n`)
  const call = (step: number): string => {
    const input = { url: `${effectsUrl}/${name}/${step}`, method: 'POST', body: '$event.mark' }
    return `${step}. **Step ${step}** - Do it.\n   - tools: http_request\n   - input: ${JSON.stringify(input)}`
  }
  const steps = asks ? [call(1), '2. **Look** - Is all well?\n   - kind: checkpoint', call(3)] : [call(1), call(2)]
  writeFileSync(join(folder, 'SOP.md'), `# ${name}\n\n## Steps\n\n${steps.join('\n')}\n`)
}
