/** `sop_list`: the procedures that are loaded. */
import { defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { type SopHost, sopsOf } from './sops-of.ts'

const SHOWN_MAX = 100

export const sopList = (host: SopHost): Tool =>
  defineTool({
    name: 'sop_list',
    description:
      'Lists the standard operating procedures that can be run: what each does, what triggers it, how many runs of it are active.',
    risk: 'read',
    input: v.object({
      filter: v.optional(
        v.pipe(v.string(), v.maxLength(200), v.description('A part of the name, or a priority (low, normal, high, critical)')),
        '',
      ),
    }),
    async run({ filter }) {
      const all = sopsOf(host).list()
      if (all.length === 0) return 'No procedures are loaded.'
      const wanted = filter.trim().toLowerCase()
      const fitting = all.filter(({ name, priority }) => name.toLowerCase().includes(wanted) || priority === wanted)
      if (fitting.length === 0) return `No procedure fits "${filter}".`
      const lines = fitting.slice(0, SHOWN_MAX).map(({ name, description, priority, mode, steps, triggers, activeRuns }) => {
        const active = activeRuns > 0 ? `, ${activeRuns} active` : ''
        return `${name} (${priority}, ${mode}, ${steps} steps, ${triggers.join(' ') || 'no trigger'}${active}): ${description}`
      })
      const more = fitting.length - lines.length
      return [`${all.length} procedures, ${fitting.length} shown:`, ...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
    },
  })
