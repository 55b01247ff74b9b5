/** The procedures of a crash run: every mode, and every kind of trigger that needs no broker. The effect of each step is counted. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** `call`: makes a request; `command`: writes a line into a file, after a person has approved it. */
type Step = 'call' | 'command' | 'checkpoint'

interface Procedure {
  readonly mode: 'auto' | 'supervised' | 'step_by_step' | 'deterministic'
  readonly trigger: string
  readonly steps: readonly Step[]
  readonly concurrentMax: number
}

/** The file in the workspace to which commands add a line. */
export const LINES_FILE = 'effects.log'
/** The procedure that a schedule starts. */
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
/** The largest number of runs of the procedure that have begun and not ended. */
export const concurrentMaxOf = (sop: string): number => PROCEDURES[sop]?.concurrentMax ?? MANY
export const isDeterministic = (sop: string): boolean => PROCEDURES[sop]?.mode === 'deterministic'

/** The procedures that an event posted to this path has to start. */
export const sopsAt = (path: string, isGated: boolean): readonly string[] =>
  Object.entries(PROCEDURES)
    .filter(([name, { trigger }]) => trigger.includes(`path = "${path}"`) && (name !== 'gated' || isGated))
    .map(([name]) => name)

/** The command with which a step writes its line. */
export const lineCommand = (sop: string, step: number, mark: string): string => `echo ${sop} ${step} ${mark} | tee -a ${LINES_FILE}`

/** Writes the procedures into a data directory; their calls go to `effectsUrl`. */
export function writeProcedures(dataDir: string, effectsUrl: string): void {
  for (const [name, procedure] of Object.entries(PROCEDURES)) {
    const folder = join(dataDir, 'sops', name)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'SOP.toml'), tomlOf(name, procedure))
    writeFileSync(join(folder, 'SOP.md'), markdownOf(name, procedure, effectsUrl))
  }
}

/** Removes the scheduled procedure. The daemon notices it a little later. */
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
