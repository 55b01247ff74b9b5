import { main } from '@sluice/cli'
import mcp from '@sluice/mcp'
import { always } from './always.ts'

await main({ profile: 'standard', features: [...always, mcp] })
