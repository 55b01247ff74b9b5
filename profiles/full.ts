import { main } from '@sluice/cli'
import { always } from './always.ts'

await main({ profile: 'full', features: [...always] })
