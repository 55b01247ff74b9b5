import { main } from '@sluice/cli'
import otel from '@sluice/observability-otel'
import pdf from '@sluice/tool-pdf'
import { always } from './always.ts'

await main({ profile: 'full', features: [...always, pdf, otel] })
