package io.fairq.spring.aop;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.expression.Expression;
import org.springframework.expression.common.TemplateParserContext;
import org.springframework.expression.spel.standard.SpelExpressionParser;

/** Labels with {@code #{…}} in them. */
final class LabelExpressions {
    private static final int MAX_BYTES = 256;

    private final SpelExpressionParser parser = new SpelExpressionParser();
    private final ParameterNameDiscoverer names = new DefaultParameterNameDiscoverer();
    private final BeanFactoryResolver beans;

    LabelExpressions(BeanFactory beans) {
        this.beans = new BeanFactoryResolver(beans);
    }

    Expression parse(String label) {
        try {
            return parser.parseExpression(label, new TemplateParserContext());
        } catch (org.springframework.expression.ParseException error) {
            throw new IllegalArgumentException("label: " + error.getMessage(), error);
        }
    }

    String evaluate(Expression label, Object target, Method method, Object[] arguments) {
        MethodBasedEvaluationContext context = new MethodBasedEvaluationContext(target, method, arguments, names);
        context.setBeanResolver(beans);
        String text = label.getValue(context, String.class);
        return text == null ? "" : fitting(text);
    }

    /** What clients send may be longer than labels are, or no text at all; a character is kept whole or not at all. */
    static String fitting(String text) {
        ByteBuffer room = ByteBuffer.allocate(MAX_BYTES);
        StandardCharsets.UTF_8
                .newEncoder()
                .onMalformedInput(CodingErrorAction.REPLACE)
                .encode(CharBuffer.wrap(text), room, true);
        return StandardCharsets.UTF_8.decode(room.flip()).toString();
    }
}
