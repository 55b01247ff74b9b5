/** The tests of a model, in their order. */
export const MODEL_TESTS = ['text', 'streaming', 'tool_call', 'tool_result', 'parallel_tool_calls', 'image'] as const
export type ModelTestName = (typeof MODEL_TESTS)[number]
