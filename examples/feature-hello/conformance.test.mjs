// Checks the feature as Sluice checks its own ones.
import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.mjs'

toolConformance({ feature, config: { greeting: 'Good day' }, examples: [{ tool: 'hello_greet', input: { name: 'Ann' } }] })
