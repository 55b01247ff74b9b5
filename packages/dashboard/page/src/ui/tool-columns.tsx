/** The columns that every table of tools has. */
import type { Got } from '../data/api.ts'
import { Badge } from './parts.tsx'
import type { Column } from './table.tsx'
import { Line, MonoName } from './text.tsx'

type Tool = Got<'/api/tools'>['tools'][number]

export const TOOL_NAME: Column<Tool> = {
  name: 'Tool',
  heads: true,
  show: ({ name }) => <MonoName value={name} />,
}
export const TOOL_STATE: Column<Tool> = {
  name: 'State',
  show: ({ available, compiled }) => <Badge state={available ? 'ready' : compiled ? 'not available' : 'left out'} />,
}
export const TOOL_PURPOSE: Column<Tool> = { name: 'What it does', show: ({ description }) => <Line value={description} /> }
