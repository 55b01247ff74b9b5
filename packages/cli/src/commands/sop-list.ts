/** `sluice sop list`: the procedures there are, with what triggers each (§4.3). */

import { oneLine } from '@sluice/sdk'
import { triggerText } from '@sluice/sop'
import { shownSop } from '@sluice/sop/shown'
import type { CliContext } from '../context.ts'
import { TEXT_CHARS_MAX } from '../deliveries/widths.ts'
import { openSops } from '../sops/open-sops.ts'
import { withStore } from '../with-store.ts'

export const run = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json } = context
    const { definitions, broken, folder, waiting } = await openSops(context)
    const active = await store.sops.activeCounts()
    const rows = definitions.map(({ steps, triggers, ...definition }) =>
      shownSop({ ...definition, steps: steps.length, triggers: triggers.map(triggerText), activeRuns: active.get(definition.name) ?? 0 }),
    )
    if (json) out.json(rows)
    else if (rows.length === 0) out.print(`no procedures in ${folder}; each is a folder with a SOP.toml and a SOP.md`)
    else
      out.table(
        ['name', 'version', 'priority', 'mode', 'steps', 'active', 'triggers', 'description'],
        rows.map((row) => [
          oneLine(row.name, TEXT_CHARS_MAX),
          oneLine(row.version, TEXT_CHARS_MAX),
          row.priority,
          row.mode,
          String(row.steps),
          String(row.active_runs),
          oneLine(row.triggers.join(' '), TEXT_CHARS_MAX * 2),
          oneLine(row.description, TEXT_CHARS_MAX),
        ]),
      )
    if (waiting.length > 0) out.warn(`not loaded until an operator agrees: ${waiting.length}; see sluice sop waiting`)
    if (broken > 0)
      out.warn(
        `${broken} ${broken === 1 ? 'folder has' : 'folders have'} errors and ${broken === 1 ? 'is' : 'are'} left out: sluice sop validate`,
      )
    return 0
  })
