import { main } from '@sluice/cli'
import { always } from './always.ts'

await main({ profile: 'standard', features: [...always] })
