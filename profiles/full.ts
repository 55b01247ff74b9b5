import { main } from '@sluice/cli'
import pdf from '@sluice/tool-pdf'
import { always } from './always.ts'

await main({ profile: 'full', features: [...always, pdf] })
