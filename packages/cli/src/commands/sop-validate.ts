/** `sluice sop validate`: everything that is wrong in the definitions, with its place; 1 if anything keeps a procedure from loading. */
import type { CliContext } from '../context.ts'
import { openSops } from '../sops/open-sops.ts'
import { problemLine } from '../sops/problem-line.ts'

export async function run(context: CliContext): Promise<number> {
  const { out, json } = context
  const { definitions, problems, broken, folder } = await openSops(context)
  const errors = problems.filter(({ severity }) => severity === 'error').length
  if (json) out.json({ folder, ok: errors === 0, loaded: definitions.length, broken, problems })
  else {
    for (const problem of problems) out.print(problemLine(out, problem))
    const warnings = problems.length - errors
    const found = [errors > 0 && count(errors, 'error'), warnings > 0 && count(warnings, 'warning')].filter(Boolean).join(' and ')
    out.print(`${count(definitions.length, 'procedure')} in ${folder} can run${found === '' ? '' : `; ${found}`}`)
  }
  return errors === 0 ? 0 : 1
}

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`
