/** The procedures of a crash run: every mode and every kind of trigger that needs no broker, each step with an effect that can be counted. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** `call`: a request that is counted; `command`: a line in a file, which a person has to agree to. */
type Step = 'call' | 'command' | 'checkpoint'

interface Procedure {
  readonly mode: 'auto' | 'supervised' | 'step_by_step' | 'deterministic'
  readonly trigger: string
  readonly steps: readonly Step[]
  readonly concurrentMax: number
}

/** Where the lines of commands are kept, below the workspace. */
export const LINES_FILE = 'effects.log'
/** Its runs start by themselves. */
export const BEAT = 'beat'
export const BEAT_MS = 2000
export const MANY = 1000

const webhook = (path: string, condition = ''): string =>
  `type = "webhook"\npath = "${path}"${condition === '' ? '' : `\ncondition = "${condition}"`}`

const PROCEDURES: Readonly<Record<string, Procedure>> = {
  pipe: { mode: 'deterministic', trigger: webhook('/pipe'), steps: ['call', 'call', 'call'], concurrentMax: MANY },
  gated: {
    mode: 'deterministic',
    trigger: webhook('/pipe', '$.gated == true'),
    steps: ['call', 'checkpoint', 'call'],
    concurrentMax: MANY,
  },
  guarded: { mode: 'deterministic', trigger: webhook('/guarded'), steps: ['call', 'command', 'call'], concurrentMax: 8 },
  worked: { mode: 'auto', trigger: webhook('/worked'), steps: ['call', 'command'], concurrentMax: 8 },
  careful: { mode: 'step_by_step', trigger: webhook('/careful'), steps: ['call', 'call'], concurrentMax: 4 },
  hooked: { mode: 'supervised', trigger: webhook('/webhook'), steps: ['call'], concurrentMax: 2 },
  [BEAT]: { mode: 'deterministic', trigger: 'type = "cron"\nexpression = "*/2 * * * * *"', steps: ['call'], concurrentMax: MANY },
}

export const stepsOf = (sop: string): readonly Step[] => PROCEDURES[sop]?.steps ?? []
export const isDeterministic = (sop: string): boolean => PROCEDURES[sop]?.mode === 'deterministic'

/** What an event posted there has to set off. */
export const sopsAt = (path: string, isGated: boolean): readonly string[] =>
  Object.entries(PROCEDURES)
    .filter(([name, { trigger }]) => trigger.includes(`path = "${path}"`) && (name !== 'gated' || isGated))
    .map(([name]) => name)

/** The command by which a step leaves its line. */
export const lineCommand = (sop: string, step: number, mark: string): string => `echo ${sop} ${step} ${mark} | tee -a ${LINES_FILE}`

/** Into a data directory; `effectsUrl` is where calls go. */
export function writeProcedures(dataDir: string, effectsUrl: string): void {
  for (const [name, procedure] of Object.entries(PROCEDURES)) {
    const folder = join(dataDir, 'sops', name)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'SOP.toml'), tomlOf(name, procedure))
    writeFileSync(join(folder, 'SOP.md'), markdownOf(name, procedure, effectsUrl))
  }
}

/** No run starts by itself any more, once the daemon has noticed. */
export const stopBeat = (dataDir: string): void => rmSync(join(dataDir, 'sops', BEAT), { recursive: true, force: true })

const tomlOf = (name: string, { mode, trigger, concurrentMax }: Procedure): string => `[sop]
name = "${name}"
description = "For crash runs"
execution_mode = "${mode}"
max_concurrent = ${concurrentMax}

[[triggers]]
${trigger}
`

function markdownOf(name: string, { mode, steps }: Procedure, effectsUrl: string): string {
  const mark = name === BEAT ? '$event.scheduled_at' : '$event.mark'
  const lines = steps.map((step, index) => {
    const number = index + 1
    if (step === 'checkpoint') return `${number}. **Look** - Is all well?\n   - kind: checkpoint`
    const tool = step === 'call' ? 'http_request' : 'shell'
    const call = { url: `${effectsUrl}/${name}/${number}`, method: 'POST', body: mark }
    const input = step === 'call' ? call : { command: '$event.command' }
    const how = mode === 'deterministic' ? `\n   - input: ${JSON.stringify(input)}` : ''
    return `${number}. **Step ${number}** - Do it.\n   - tools: ${tool}${how}`
  })
  return `# ${name}\n\n## Steps\n\n${lines.join('\n')}\n`
}
