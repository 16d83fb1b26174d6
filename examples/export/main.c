#include <stdio.h>
#include "scorer.h"

int main(void) {
    float x[16], scores[4];
    for (int i = 0; i < 16; i++)
        if (scanf("%f", &x[i]) != 1) return fputs("16 numbers are needed\n", stderr), 1;

    struct scorer_tensors tensors = {.x = x, .scores = scores};
    asmdnn_context *context = NULL;
    const char *wrong = scorer_create(&context, 0);
    if (!wrong) wrong = scorer_run(context, &tensors);
    if (wrong) fprintf(stderr, "%s\n", wrong);
    else for (int i = 0; i < 4; i++) printf("%.9g\n", scores[i]);
    asmdnn_destroy(context);
    return wrong != NULL;
}
