// A feature from outside of Sluice: a tool and a command that greet, with a greeting from the section `[hello]`.
import { AppError, defineFeature, defineTool } from '@sluice/sdk'
import * as v from 'valibot'

const section = {
  path: 'hello',
  schema: v.object({
    greeting: v.optional(v.pipe(v.string(), v.minLength(1), v.description('The word before the name')), 'Hello'),
  }),
}

const greetTool = (greeting) =>
  defineTool({
    name: 'hello_greet',
    description: 'Greets somebody by name.',
    input: v.object({ name: v.pipe(v.string(), v.minLength(1), v.maxLength(100)) }),
    risk: 'read',
    egress: false,
    untrusted: false,
    run: async ({ name }) => `${greeting}, ${name}!`,
  })

export default defineFeature({
  id: 'x-hello',
  section,
  // What `sluice features` and help show, and the names that answer with the reason while the feature is not ready.
  row: {
    kind: 'tool',
    summary: 'Greets people',
    section: 'hello',
    tools: ['hello_greet'],
    commands: ['hello say'],
    commandHelp: { 'hello say': { summary: 'Greet somebody', usage: '<name>' } },
  },
  build: (_host, { greeting }) => ({
    tools: [greetTool(greeting)],
    commands: [
      {
        name: 'hello say',
        summary: 'Greet somebody',
        async run({ args: [name], print }) {
          if (!name) throw new AppError('invalid_request', 'hello say wants a name')
          print(`${greeting}, ${name}!`)
          return 0
        },
      },
    ],
  }),
})
