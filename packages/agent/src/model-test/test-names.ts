/** The tests of a model, in their order. */
export const MODEL_TESTS = ['text', 'streaming', 'tool_call', 'tool_result', 'parallel_tool_calls', 'image'] as const

/** The tasks of `sluice models test --tasks`: short pieces of the work of an agent. */
export const MODEL_TASKS = [
  'edit',
  'search',
  'picture',
  'long_file',
  'failing_tool',
  'two_languages',
  'refusal',
  'long_conversation',
  'parallel_calls',
  'mcp_tool',
] as const

export const MODEL_TESTS_AND_TASKS = [...MODEL_TESTS, ...MODEL_TASKS] as const

export type ModelTaskName = (typeof MODEL_TASKS)[number]
export type ModelTestName = (typeof MODEL_TESTS_AND_TASKS)[number]
